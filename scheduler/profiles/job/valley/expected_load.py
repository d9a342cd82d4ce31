"""The predicted load of the nodes that jobs may use, as one curve per resource, on the grid of starts.

Virtual nodes are left out: their capacity is the provider's, and nothing is predicted for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.cluster import PredictedCluster
from cluster.predicted.pod_bounds import bounded_requests
from cluster.tracking import TrackedCluster
from forecast.resources import RESOURCES
from kube.objects.objects import NodeInfo
from placement.virtual_nodes.node_ownership import is_labelled_virtual
from scheduler.profiles.job.valley.start_plan import ExpectedLoad

_NODES_AT_ONCE: Final = 1_000
_REQUESTED: Final = ("cpu", "memory")
_LEFT_FREE: Final = 0.05


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
