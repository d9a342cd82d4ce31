"""OffPeak: nodes whose predicted peak falls into a pod's run are kept for later.

A node is over if its predicted load in any half hour that the run touches, live correction included, passes the
ceiling with the pod. Of the resources that make a node hot (forecast/resources.py); a node without a known capacity is
not over, and an assumed capacity keeps no pod waiting.

    pod that may wait     filter: rejected there, and tried again when the forecast changes or a pod leaves
    pod that may not      preference: other nodes first, if there are any

Of many like pods either way no more go to a node than it has room for below the ceiling, while others have some.

A pod counts as one that may wait while its latest start is further away than an unschedulable pod is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from base.arrays import AnyFloats, Bools, Ints
from cluster.predicted.load import PredictedLoad
from forecast.resources import HOT_RESOURCES, RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.plugins import NodePreference, Preferred
from placement.usable_forecast import usable_forecast
from profiles.job.job_settings import ValleyOptions
from scorer.scoring_policy import opts_out

_LEAST_SLACK: Final = 600.0
"""Seconds: twice as long as an unschedulable pod waits at most before it is tried again whatever happens."""

_T = TypeVar("_T", bound=np.generic)

_ENDLESS: Final = 1_000_000
_MOST_KNOWN: Final = 8


@dataclass(frozen=True, slots=True)
class _Room:
    """pods: (n_rows,) pods like it that a node takes until it is over; resource: which one is over first."""

    pods: Ints
    resource: Ints


class OffPeak(PlainFilter, NodePreference):
    """Filter and NodePreference; for the one thread that schedules."""

    name = "OffPeak"
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,
            EventKind.TIMEOUT,
        }
    )

    def __init__(
        self,
        ceiling: float,
        options: ValleyOptions,
        due_of: Callable[[PodInfo], float],
        run_seconds: Callable[[PodInfo, ServiceKey], float | None],
    ) -> None:
        """
        ceiling     : share of capacity that a node is to stay below while a job runs there
        due_of      : unix seconds, the latest moment at which a pod may start; inf = it does not say
        run_seconds : how long a pod is expected to run from now; None = on and on
        """
        self._ceiling, self._options, self._due_of, self._run_seconds = ceiling, options, due_of, run_seconds
        self._load: PredictedLoad | None = None
        self._known: dict[tuple[Hashable, ...], _Room] = {}  # of that load, as it is

    def may_wait(self, pod: PodInfo, now: float) -> bool:
        """Whether the pod says that it may, and has the time."""
        due = self._due_of(pod)
        return self._options.enabled and now + _LEAST_SLACK < due - self._options.margin < math.inf

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Pods of one template may differ in whether they may wait: of Jobs, or without a Job, of different times."""
        due = self._due_of(pod)
        return None if due == math.inf else due // _LEAST_SLACK

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One rejection per resource, for pods that may wait."""
        if not self.may_wait(pod, view.cluster.now):
            return ()
        room = self._room(pod, view)
        if room is None:
            return ()
        over = _fitted(room.pods < 1, view.n_rows)
        if not over.any():
            return ()
        rejections: list[Rejection] = []
        resource = _fitted(room.resource, view.n_rows)
        for one in HOT_RESOURCES:
            reason = (
                f"predicted load of {RESOURCES[one].name} would pass {100 * self._ceiling:g} % of capacity "
                "during the expected run, and the pod may wait"
            )
            rejections += found(np.asarray(over & (resource == one)), view, reason, preemptible=False)
        return rejections

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it until each of these nodes is over; no end to it where all are."""
        room = self._room(pod, view)
        of_rows = None if room is None else _fitted(room.pods, view.n_rows, fill=_ENDLESS)[rows]
        if of_rows is None or not (of_rows >= 1).any():
            return np.full(len(rows), _ENDLESS, dtype=np.int64)
        return of_rows

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """Nodes that stay below the ceiling, for no more pods than these have room for."""
        of_rows = self.room(pod, view, rows)
        below = of_rows >= 1
        return Preferred(rows[below], min(n_pods, int(np.minimum(of_rows[below], n_pods).sum())))

    # Inside

    def _room(self, pod: PodInfo, view: ClusterView) -> _Room | None:
        """None = there is nothing to go by: no forecast, or a pod that runs on and on."""
        cluster = view.cluster
        predicted = usable_forecast(cluster)
        if predicted is None or opts_out(pod):
            return None
        seconds = self._run_seconds(pod, cluster.state.service_key(pod))
        if seconds is None:
            return None
        horizon, load = predicted.horizon, predicted.load
        first = min(horizon.slot, horizon.n_slots - 1)
        end = math.ceil(min(horizon.position(cluster.now + min(seconds, 7 * 86_400.0)), float(horizon.n_slots)))
        end = min(max(end, first + 1), horizon.n_slots)
        profile = cluster.profile(pod)
        key = (profile, first, end, *load.version(profile))
        known = self._known.get(key) if load is self._load else None
        if known is None:
            if load is not self._load or len(self._known) >= _MOST_KNOWN:
                self._load, self._known = load, {}
            known = self._known[key] = self._made(load, predicted.capacity_assumed, profile, first, end)
        return known

    def _made(self, load: PredictedLoad, assumed: Bools, profile: int, first: int, end: int) -> _Room:
        """assumed : (n_nodes, n_resources) capacities that the trainer assumed, which keep no pod waiting"""
        own = load.usage_of(profile)[:, first:end]
        pods = np.full(load.n_nodes, _ENDLESS, dtype=np.int64)
        resource = np.full(load.n_nodes, HOT_RESOURCES[0], dtype=np.int64)
        per_capacity = np.where(assumed, 0.0, load.per_capacity(np.arange(load.n_nodes)))
        for one in HOT_RESOURCES:
            if not own[one].any():
                continue
            share = load.share_between(one, first, end)
            fits = _pods_below(share, own[one], per_capacity[:, one], self._ceiling)
            fewer = fits < pods
            resource[fewer], pods[fewer] = one, fits[fewer]
        return _Room(pods, resource)


def _pods_below(share: AnyFloats, own: AnyFloats, per_capacity: AnyFloats, ceiling: float) -> Ints:
    """(n_nodes,) pods that fit below the ceiling at every point.

    share : (n_nodes, n_points); own: (n_points,) base units; per_capacity: (n_nodes,) 0 = not known
    """
    highest = share[:, own > 0].max(axis=1)  # a job uses about the same all the time
    each = own.max() * per_capacity
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(each > 0, np.floor((ceiling - highest) / each), _ENDLESS)
    return np.clip(fits, 0, _ENDLESS).astype(np.int64)


def _fitted(values: NDArray[_T], n_rows: int, *, fill: int = 0) -> NDArray[_T]:
    """(n_rows,) a node may be so new that the forecast has no row for it, and rows that were given up may linger."""
    if len(values) >= n_rows:
        return values[:n_rows]
    return np.concatenate([values, np.full(n_rows - len(values), fill, dtype=values.dtype)])
