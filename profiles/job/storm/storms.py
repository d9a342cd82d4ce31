"""Storms: minutes with so many new pods that preparation pays off; and on which nodes room is kept for one.

    pods per minute   3 2 3 3 2 90 70 3 2        60 60 60 60 60 60 60 60 60
    steady            3                          60
    storms                      -----            none

What comes steadily has found its room: it is none, however many come in a day.

As few nodes as possible: those that take most of the storm's pods first, so that all others keep whole nodes. What was
kept stays where it is, as far as it still fits, and what is added goes to the same nodes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from base.arrays import Bools, Floats, Ints
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from profiles.job.job_annotations import PLACE_ANNOTATION, Place
from profiles.job.storm.job_demand import DemandSource, JobDemand

THRESHOLD: Final = 50
"""Pods per minute beyond what comes steadily."""

_MINUTE: Final = 60.0
_MOST_STORMS: Final = 1_000

_LONGEST: Final = 15
"""Minutes of a storm. What comes in more of the minutes around is there all the time, and needs no room kept."""

_AROUND: Final = 41
"""Minutes. Pods that come every other minute do in 20 of them, which is steady, too."""

_MOST: int = 2**31


@dataclass(frozen=True, slots=True)
class Storm:
    """
    start, until : unix seconds of its first minute and of the end of its last
    pods         : that come in it; cpu, memory: cores and bytes that they request together
    lasts        : seconds that its pods run, the mean
    sources      : names, of the most pods first
    services     : of its pods, as far as they are known
    groups       : names of bursts, whose pods are known by them (recurring_starts.py)
    pod_request  : of a typical pod of it, the mean, by resource name
    priority     : the highest of its sources
    may_leave    : pods that virtual nodes may take: those that do not say they must stay
    only_outside : pods that must not stay in the cluster
    side_by_side : (n_minutes,) of its pods, that are expected to run at once in each of its minutes; () = all of them
    """

    start: float
    until: float
    pods: int
    cpu: float
    memory: float
    lasts: float
    sources: tuple[str, ...]
    services: frozenset[ServiceKey]
    pod_request: Mapping[str, float] = field(default_factory=dict)
    priority: int = 0
    groups: frozenset[str] = frozenset()
    may_leave: int = 0
    only_outside: int = 0
    side_by_side: tuple[int, ...] = ()

    def is_same(self, other: Storm) -> bool:
        """Whether it is the same storm by what is known now: of the same jobs, some of them, at the same time."""
        if not (self.start < other.until and other.start < self.until):
            return False
        return bool(self.services & other.services or self.groups & other.groups)

    def most_at_once(self, first: float, last: float) -> int:
        """How many of its pods are expected side by side, at most, at any time between these unix seconds."""
        if not self.side_by_side:
            return self.pods
        latest = len(self.side_by_side) - 1
        at, end = (min(max(0, int((moment - self.start) // _MINUTE)), latest) for moment in (first, last))
        return max(self.side_by_side[at : end + 1], default=0)


def storms(demand: JobDemand, threshold: float = THRESHOLD) -> list[Storm]:
    """By their start. Minutes in which as many pods as the threshold come beyond what comes steadily, one after the
    other, are one storm: 15 of them at most."""
    busy = np.flatnonzero((demand.arrivals >= threshold) & (demand.arrivals - _steady(demand.arrivals) >= threshold))
    if not len(busy):
        return []
    breaks = np.flatnonzero(np.diff(busy) > 1) + 1
    spans = [(int(run[0]), int(run[-1]) + 1) for run in np.split(busy, breaks)[:_MOST_STORMS]]
    edges = demand.start + _MINUTE * np.array(spans, dtype=np.float64)  # (n_storms, 2)
    parts: list[list[tuple[int, float, DemandSource]]] = [[] for _ in spans]
    at_once = [np.zeros(end - start + 1, dtype=np.int64) for start, end in spans]
    for one in demand.sources:
        if not one.counts or not len(one.times):
            continue
        for at, (first, last) in enumerate(np.searchsorted(one.times, edges).tolist()):
            if last > first:
                seconds = float(one.run_seconds[first] if last == first + 1 else one.run_seconds[first:last].mean())
                parts[at].append(((last - first) * one.pods, seconds, one))
                _add_runs(at_once[at], one.times[first:last] - edges[at, 0], one.run_seconds[first:last], one.pods)
    return [
        _storm(start, until, made, tuple(np.cumsum(changes)[:-1].tolist()))
        for (start, until), made, changes in zip(edges.tolist(), parts, at_once, strict=True)
    ]


def _steady(arrivals: Floats) -> Floats:
    """(n_minutes,) as many as come in more minutes around each than a storm has."""
    width = min(_AROUND, len(arrivals))
    if width <= _LONGEST:
        return np.zeros(len(arrivals))
    of_windows = np.partition(sliding_window_view(arrivals, width), width - _LONGEST - 1, axis=1)[:, -_LONGEST - 1]
    # At both ends of the day the window reaches further to the other side.
    at = np.clip(np.arange(len(arrivals)) - width // 2, 0, len(of_windows) - 1)
    return np.asarray(of_windows[at])


def _add_runs(changes: Ints, begin: Floats, seconds: Floats, pods: int) -> None:
    """changes: (n_minutes + 1,) of the pods that run, the last entry is of after the storm; begin: seconds after its
    first minute; both (n_runs,)."""
    after = len(changes) - 1
    first = np.clip(begin // _MINUTE, 0, after).astype(np.int64)
    end = np.clip((begin + seconds + _MINUTE - 1) // _MINUTE, first, after).astype(np.int64)
    np.add.at(changes, first, pods)
    np.add.at(changes, end, -pods)


def _storm(
    start: float, until: float, parts: list[tuple[int, float, DemandSource]], side_by_side: tuple[int, ...]
) -> Storm:
    """parts: pods, seconds that they run, source."""
    parts.sort(key=lambda part: (-part[0], part[2].name))
    n_pods = sum(pods for pods, _, _ in parts)
    kinds = dict.fromkeys(kind for _, _, one in parts for kind in one.requests)
    total = {kind: sum(pods * one.requests.get(kind, 0.0) for pods, _, one in parts) for kind in kinds}
    place = {id(one): (one.annotations or {}).get(PLACE_ANNOTATION, "") for _, _, one in parts}
    return Storm(
        start=start,
        until=until,
        pods=n_pods,
        cpu=total.get("cpu", 0.0),
        memory=total.get("memory", 0.0),
        lasts=sum(pods * seconds for pods, seconds, _ in parts) / n_pods,
        sources=tuple(dict.fromkeys(one.name for _, _, one in parts)),
        services=frozenset(one.service for _, _, one in parts if one.service is not None),
        pod_request={kind: amount / n_pods for kind, amount in total.items()},
        priority=max(one.priority for _, _, one in parts),
        groups=frozenset(one.name for _, _, one in parts if one.service is None),
        may_leave=sum(pods for pods, _, one in parts if place[id(one)] != Place.CLUSTER.value and not one.stays),
        only_outside=sum(pods for pods, _, one in parts if place[id(one)] == Place.SERVERLESS.value),
        side_by_side=side_by_side,
    )


# Which nodes room is kept on for a storm. Pure.
#
# As few nodes as possible: those that take most of the storm's pods first, so that all others keep whole nodes. What
# was kept stays where it is, as far as it still fits, and what is added goes to the same nodes first.


def free_units(state: ClusterState, kind: str) -> Ints:
    """Return free whole units of a resource that some node has named, (n_rows,); below 0 = too much is taken."""
    column = state.kinds[kind]
    taken = state.pod_count if kind == "pods" else state.requested_units[:, column]
    return np.asarray(state.allocatable_units[:, column] - taken)


def fitting(free: Ints, wanted: Ints) -> Ints:
    """(n_rows,) how many pods fit. free: (n_rows, n_kinds) whole units; wanted: (n_kinds,) of one pod, 0 = nothing."""
    asked = wanted > 0
    if not asked.any():
        return np.full(len(free), _MOST, dtype=np.int64)
    return np.asarray(np.maximum(free[:, asked] // wanted[asked], 0).min(axis=1), dtype=np.int64)


def keep_room(fits: Ints, eligible: Bools, pods: int, kept: Ints) -> Ints:
    """(n_rows,) for how many pods room is kept where: `pods` altogether, or as many as there is room for.

    fits : (n_rows,) pods that would fit; kept: (n_rows,) for how many it was kept before
    """
    most = np.where(eligible, np.minimum(fits, pods), 0)
    before = np.minimum(kept, most)
    beyond = max(0, pods - int(before.sum()))
    if beyond == 0:
        return _filled(before, np.lexsort((-before,)), pods)
    more = most - before
    return np.asarray(before + _filled(more, np.lexsort((-more, before == 0)), beyond))


def _filled(most: Ints, order: Ints, pods: int) -> Ints:
    """Return `pods` spread over one row after the other, (n_rows,), at most `most` on each."""
    ordered = most[order]
    chosen = np.zeros(len(most), dtype=np.int64)
    chosen[order] = np.clip(pods - (np.cumsum(ordered) - ordered), 0, ordered)
    return chosen
