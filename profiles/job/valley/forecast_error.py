"""The predicted load of the nodes that jobs may use, and its error, to decide whether two starts differ.

The cluster is taken as one large node (forecast/composition.py), with c pods of service s:

    variance(t) = sum_s (c own_s(t)^2 + c^2 shared_s(t)^2) + (cluster_std * mean(t))^2

Errors of the nodes' bases average out over the nodes and are left out. So are pods of runs: they have ended by most of
the starts that are compared.

Virtual nodes are left out: their capacity is the provider's, and nothing is predicted for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.degradation import widening
from cluster.predicted.pod_bounds import bounded_requests
from cluster.predicted.pod_profiles import ProfileKey
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tracking import TrackedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import RESOURCES
from kube.objects.objects import NodeInfo
from placement.virtual_node_table import is_labelled_virtual
from profiles.job.valley.start_plan import ExpectedLoad

_NODES_AT_ONCE: Final = 1_000
_REQUESTED: Final = ("cpu", "memory")
_LEFT_FREE: Final = 0.05

_REFRESH_SECONDS: Final = 600.0
_NODES_PER_LOCK: Final = 500


def is_real(node: NodeInfo) -> bool:
    """Whether its labels do not say that it is a provider's."""
    return not is_labelled_virtual(node)


def usable_rows(
    cluster: TrackedCluster, predicted: PredictedCluster, is_ours: Callable[[NodeInfo], bool] = is_real
) -> Ints:
    """Rows of ready nodes that new pods may go to, and whose load is predicted. is_ours: nodes that jobs may use."""
    nodes = cluster.state.nodes[: predicted.load.n_nodes]
    return np.array(
        [
            row
            for row, node in enumerate(nodes)
            if node is not None and node.ready and not node.unschedulable and is_ours(node)
        ],
        dtype=np.int64,
    )


def expected_load(
    cluster: TrackedCluster, predicted: PredictedCluster, rows: Ints, now: float, *, hours: float, step: float
) -> ExpectedLoad | None:
    """To be called under the lock of the tables; milliseconds for thousands of nodes. None = no node has a capacity.

    now : unix seconds
    """
    horizon, load = predicted.horizon, predicted.load
    began = now // step * step  # the same grid for all plans
    moments: Floats = began + step * np.arange(max(1, int(np.ceil(hours * 3600 / step))), dtype=np.float64)
    # Of the wall clock, so that a change of clocks is right. The middle of a point against the middles of half hours.
    positions = np.array([horizon.position(float(moment) + step / 2) for moment in moments]) - 0.5
    first = max(0, min(horizon.slot - 1, horizon.n_slots - 1))
    end = int(min(max(np.ceil(positions.max()) + 2, first + 1), horizon.n_slots))
    share = np.zeros((len(RESOURCES), end - first))
    capacity = np.zeros(len(RESOURCES))
    for start in range(0, len(rows), _NODES_AT_ONCE):
        some = rows[start : start + _NODES_AT_ONCE]
        per_capacity = load.per_capacity(some)  # (n_nodes, n_resources)
        amounts = np.where(per_capacity > 0, 1 / np.where(per_capacity > 0, per_capacity, 1.0), 0.0)
        capacity += amounts.sum(axis=0)
        for resource in range(len(RESOURCES)):
            of_nodes = load.share_between(resource, first, end, some)
            share[resource] += amounts[:, resource].astype(np.float64) @ of_nodes
    if not capacity.any():
        return None
    share /= np.where(capacity > 0, capacity, 1.0)[:, None]
    ahead, room = _interpolated(share, positions - first), _room(cluster, rows, moments)
    return ExpectedLoad(began, step, ahead, capacity, room, len(rows))


def _room(cluster: TrackedCluster, rows: Ints, moments: Floats) -> Floats:
    """Return cores and bytes that may be requested, (2, n_points): what is free, and what running jobs will have
    released.

    Some of it is left for others.
    """
    state = cluster.state
    room = np.zeros((len(_REQUESTED), len(moments)))
    for at, name in enumerate(_REQUESTED):
        column = state.kinds[name]
        allocatable, requested = state.allocatable[rows, column], state.requested[rows, column]
        room[at] = np.maximum(allocatable - requested, 0.0).sum() - _LEFT_FREE * allocatable.sum()
    usable, step = np.zeros(state.n_rows, dtype=bool), moments[1] - moments[0] if len(moments) > 1 else 1.0
    usable[rows] = True
    given_back = np.zeros_like(room)
    for uid, run in cluster.runs.items():
        seat, pod = state.seat_of.get(uid), state.pods.get(uid)
        if seat is None or pod is None or not usable[seat.node]:
            continue
        point = max(0, int(np.ceil(min((run.end - moments[0]) / step, len(moments)))))
        if point < len(moments):
            given_back[:, point] += bounded_requests(pod.requests, cluster.most_of(pod))
    return np.asarray(room + np.cumsum(given_back, axis=1))


def _interpolated(share: Floats, positions: Floats) -> Floats:
    """(n_resources, n_slots) at fractional positions -> (n_resources, n_points)."""
    at = np.arange(share.shape[1], dtype=np.float64)
    return np.array([np.interp(positions, at, of_one) for of_one in share])


@dataclass(frozen=True, slots=True)
class ForecastDeviation:
    """Standard deviation of the cluster's load, in parts.

    of_pods : (n_resources, 48) base units, by half hour of the day
    common  : (n_resources,) share of the load
    """

    of_pods: Floats
    common: Floats

    def of_share(self, share: Floats, capacity: Floats, slots: Ints) -> Floats:
        """Return (n_resources, n_points) shares of capacity.

        share : likewise, the mean; slots: (n_points,) half hour of the day of each point
        """
        per_capacity = np.where(capacity > 0, 1 / np.where(capacity > 0, capacity, 1.0), 0.0)
        return np.asarray(
            np.hypot(self.of_pods[:, slots] * per_capacity[:, None], self.common[:, None] * np.maximum(share, 0.0))
        )


class ClusterErrors:
    """Made anew for another model or day, and every ten minutes: pods come and go, but the sum hardly changes."""

    def __init__(
        self, reading: Callable[[], AbstractContextManager[TrackedCluster]], is_ours: Callable[[NodeInfo], bool]
    ) -> None:
        """reading: the tables under their lock; is_ours: nodes that jobs may use."""
        self._reading, self._is_ours = reading, is_ours
        self._of: PredictedCluster | None = None
        self._made: ForecastDeviation | None = None
        self._at = 0.0

    def of(self, predicted: PredictedCluster, now: float) -> ForecastDeviation | None:
        """The error of these tables. None = others came in between. now: unix seconds."""
        if predicted is not self._of or not 0 <= now - self._at < _REFRESH_SECONDS:
            counted = self._count(predicted)
            if counted is None:
                return None
            self._made, self._of, self._at = _error(predicted, *counted), predicted, now
        return self._made

    def _count(self, predicted: PredictedCluster) -> tuple[list[ProfileKey], Floats, Floats] | None:
        """Profiles of the pods on nodes that jobs may use, how many pods of each, and replicas of their services."""
        pods: Counter[int] = Counter()
        with self._reading() as cluster:
            if cluster.predicted is not predicted:
                return None
            rows = usable_rows(cluster, predicted, self._is_ours).tolist()
        for start in range(0, len(rows), _NODES_PER_LOCK):
            with self._reading() as cluster:
                if cluster.predicted is not predicted:
                    return None
                for row in rows[start : start + _NODES_PER_LOCK]:
                    pods.update(predicted.load.pods_on(row))
        with self._reading():
            numbers = [number for number in pods if predicted.keys[number].run is None]
            keys = [predicted.keys[number] for number in numbers]
            replicas = np.array([predicted.replicas_used(number) for number in numbers], dtype=np.float64)
        return keys, np.array([pods[number] for number in numbers], dtype=np.float64), replicas


def _error(predicted: PredictedCluster, keys: list[ProfileKey], pods: Floats, replicas: Floats) -> ForecastDeviation:
    model, today = predicted.profiles.model, predicted.horizon.today
    own, shared = predicted.profiles.std_of(keys, replicas, today)  # (n_keys, n_resources, 48)
    variance = np.zeros((len(RESOURCES), SLOTS_PER_DAY))
    variance += np.einsum("k,krs->rs", pods, own.astype(np.float64) ** 2)
    variance += np.einsum("k,krs->rs", pods**2, shared.astype(np.float64) ** 2)
    widen = widening((today - model.first_day).days)
    return ForecastDeviation(widen * np.sqrt(variance), widen * model.cluster_std.astype(np.float64))
