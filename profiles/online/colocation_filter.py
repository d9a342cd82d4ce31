"""Filter PredictedGap: low-priority pods go only where they fit between the predicted load and capacity.

    upper bound of the node's load(t) + the pod's own use(t) <= ceiling * capacity

at every half hour t of the hours ahead, for CPU and memory (docs/use/colocation.md). A pod is of low priority by its
priority, or by the annotation `forecast-scheduler.io/colocate: "true"`, with which it may only be held back, never
let in. All other pods pass: they may preempt those that were let in.

Without a usable model the gap is what requests leave free, and VirtualAvailable where usage is measured.

What pods declare to use beyond what they request, summed by node: for a gap that is judged by requests alone.

A low-priority pod requests little, so that it fits next to others, and may use much; its annotation
`forecast-scheduler.io/virtual-request` says so. A forecast has it already (cluster/predicted/pod_profiles.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.predicted.array_rows import grown
from cluster.predicted.pod_bounds import declared_amounts
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import RESOURCES
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_annotations import comes_with_node
from placement.filters.rejections import every_node, found
from placement.usable_forecast import usable_forecast
from profiles.online.colocation_settings import GapOptions
from profiles.online.upper_bounds import GAP_RESOURCES, Bounds, UpperBounds, upper_load

# What pods declare to use beyond what they request, summed by node: for a gap that is judged by requests alone.
#
# A low-priority pod requests little, so that it fits next to others, and may use much; its annotation
# `forecast-scheduler.io/virtual-request` says so. A forecast has it already (cluster/predicted/pod_profiles.py).

COLOCATE_ANNOTATION: Final = ANNOTATION_PREFIX + "colocate"
_UNKNOWN: Final = "predicted load is not known"


class DeclaredUse(NodesAndPodsOnly):
    """Sums by node, kept up to date pod by pod. Implements cluster.follower.Follower; attach it without kinds."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, tuple[int, Floats]] = {}  # by UID: row, beyond its request
        self._sums = np.zeros((0, len(GAP_RESOURCES)))
        self.rebuild()

    def beyond_requests(self) -> Floats:
        """(n_rows, len(GAP_RESOURCES)) base units."""
        self._sums = grown(self._sums, self._state.n_rows)
        return self._sums[: self._state.n_rows]

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._remove(change.pod.uid)
                if change.after is not None:
                    self._add(change.pod, change.after.node)

    def rebuild(self) -> None:
        self._pods.clear()
        self._sums[:] = 0.0
        for uid, seat in self._state.seat_of.items():
            self._add(self._state.pods[uid], seat.node)

    def _add(self, pod: PodInfo, row: int) -> None:
        if not (declared := declared_amounts(pod)):
            return
        amounts = dict(declared)
        requested = [pod.requests.get(RESOURCES[r].name, 0.0) for r in GAP_RESOURCES]
        beyond = np.maximum(np.array([amounts.get(r, 0.0) for r in GAP_RESOURCES]) - requested, 0.0)
        if beyond.any():
            self._pods[pod.uid] = (row, beyond)
            self._sums = grown(self._sums, row + 1)
            self._sums[row] += beyond

    def _remove(self, uid: str) -> None:
        row, beyond = self._pods.pop(uid, (0, None))
        if beyond is not None:
            self._sums[row] -= beyond


_NAMES: Final = tuple(RESOURCES[resource].name for resource in GAP_RESOURCES)


class PredictedGap(PlainFilter):
    """Evicting pods does not help: no pod has to go for a pod that takes what is left over.

    Pods of a DaemonSet pass. `forecast-scheduler.io/opt-out` is ignored: the filter protects the other pods of the
    node.
    """

    name = "PredictedGap"
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

    def __init__(self, options: GapOptions, bounds: UpperBounds, declared_use: DeclaredUse) -> None:
        """bounds: made for as many hours, and renewed elsewhere; declared_use: follows the same tables."""
        self.options, self._bounds, self._declared_use = options, bounds, declared_use

    def is_low_priority(self, pod: PodInfo) -> bool:
        """Whether the pod is admitted by forecast."""
        says_so = pod.annotations.get(COLOCATE_ANNOTATION, "").lower() == "true"
        return (pod.priority < self.options.priority_below or says_so) and not comes_with_node(pod)

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether it lets the pod go anywhere, whatever comes to sit where."""
        return not self.is_low_priority(pod)

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One rejection per resource."""
        if not self.is_low_priority(pod):
            return ()
        predicted = usable_forecast(view.cluster)
        percent = f"{100 * self.options.ceiling:g} %"
        rejections: list[Rejection] = []
        if predicted is None:
            for position, resource in enumerate(_NAMES):
                full = self._by_requests(pod, view, position)
                reason = f"requests or usage of {resource} would pass {percent}, there is no forecast"
                rejections += found(full, view, reason, preemptible=False)
            return rejections
        bounds = self._bounds.of(view.cluster)
        if bounds is None:  # the first minute of a process, of a model, of a day
            return every_node(view, _UNKNOWN)
        known = bounds.known(view.cluster)
        rows = np.flatnonzero(known)
        for position, resource in enumerate(_NAMES):
            full = np.zeros(view.n_rows, dtype=bool)
            full[self._too_full(pod, view, predicted, bounds, position, rows)] = True
            reason = f"predicted load of {resource} would pass {percent} of capacity within {self.options.hours} h"
            rejections += found(full, view, reason, preemptible=False)
        return [*rejections, *found(~known, view, _UNKNOWN, preemptible=False)]

    # Inside

    def _too_full(
        self,
        pod: PodInfo,
        view: ClusterView,
        predicted: PredictedCluster,
        bounds: Bounds,
        position: int,
        rows: Ints,
    ) -> Ints:
        """Those of `rows` whose nodes would come to be too full of a resource."""
        resource, load = GAP_RESOURCES[position], predicted.load
        first = predicted.horizon.slot
        end = min(first + self.options.hours * SLOTS_PER_DAY // 24, predicted.horizon.n_slots)
        profile = view.cluster.profile(pod)
        own = load.usage_of(profile)[resource, first:end]
        # Highest of everything, whenever each of them comes: most nodes are far from full, and need no closer look.
        capacity = predicted.capacity[rows, resource]
        per_capacity = 1 / np.where(capacity > 0, capacity, np.nan)
        at_most = load.peak_with(profile, resource, rows) + bounds.highest_margin(position, rows)
        at_most += (own.max() - float(load.peak_of_pod(profile, resource))) * per_capacity
        close = ~(at_most <= self.options.ceiling)  # NaN: the capacity is not known any more
        rows, per_capacity = rows[close], per_capacity[close].astype(np.float32)
        upper = upper_load(predicted, bounds, position, first, end, rows)
        upper += per_capacity[:, None] * own
        return np.asarray(rows[~(upper.max(axis=1) <= self.options.ceiling)])

    def _by_requests(self, pod: PodInfo, view: ClusterView, position: int) -> Bools:
        """(n_rows,) nodes that are too full by requests, or by usage where it is measured."""
        state, name = view.state, _NAMES[position]
        column = state.kinds[name]
        wanted = max(view.cluster.expected_use(pod).amount[GAP_RESOURCES[position]], pod.requests.get(name, 0.0))
        asked = state.requested[:, column] + self._declared_use.beyond_requests()[:, position] + wanted
        full = asked > self.options.ceiling * state.allocatable[:, column]
        available = view.cluster.virtual_available()[:, GAP_RESOURCES[position]]
        kept_free = (1 - self.options.ceiling) * view.cluster.capacity[:, GAP_RESOURCES[position]]
        return np.asarray(full | (available - wanted < kept_free))  # NaN = not measured: requests decide
