"""What is known about a pod, apart from the pod itself, when the cost of its move is asked for: read from the live
tables, and start-up times learned from pods that pass by.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from statistics import median
from typing import Final
from zoneinfo import ZoneInfo

from base.excluded import ExcludedOptions
from cluster.assuming_cluster import AssumingCluster
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from rebalancer.timing.windows import MoveWindow

_REMEMBERED: Final = 15
"""Pods per service. The median of these follows a new version within a rollout, and no single slow node moves it."""

_LONGEST: Final = 3600.0
"""Seconds. A pod that became ready later was broken and mended, or has lost its readiness in between."""

CoolingUntil = Callable[[PodInfo], float | None]
"""Unix seconds until which a pod is not to be moved again; None = it was not moved lately."""


@dataclass(frozen=True, slots=True)
class StartupTime:
    """Seconds from the binding of a pod until it is ready, by so many pods. n = 0: unknown, and seconds is NaN."""

    seconds: float
    n: int

    def seconds_or(self, default: float) -> float:
        """The seconds, or a default where they are unknown."""
        return self.seconds if self.n else default


UNKNOWN_STARTUP: Final = StartupTime(math.nan, 0)


def startup_seconds(pod: PodInfo) -> float | None:
    """Return the seconds of one pod; None = it is not ready, or does not say since when."""
    if pod.ready is None:
        return None
    begin = pod.created if pod.scheduled is None else pod.scheduled
    seconds = pod.ready - begin
    return seconds if 0 <= seconds <= _LONGEST else None


class StartupTimes:
    """Start-up times of services. Not for several threads at once.

    A pod counts once, by the first time it is seen ready: later its condition says since when it is ready *again*.
    most : services that are remembered, those seen last
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = max(1, most)
        self._of: OrderedDict[ServiceKey, deque[tuple[str, float]]] = OrderedDict()

    def see(self, pod: PodInfo, service: ServiceKey) -> None:
        """Learn from a pod, as often as it passes by."""
        seconds = startup_seconds(pod)
        if seconds is None:
            return
        seen = self._of.get(service)
        if seen is None:
            while len(self._of) >= self._most:
                self._of.popitem(last=False)
            seen = self._of[service] = deque(maxlen=_REMEMBERED)
        elif any(uid == pod.uid for uid, _ in seen):
            return
        self._of.move_to_end(service)
        seen.append((pod.uid, seconds))

    def of(self, service: ServiceKey) -> StartupTime:
        """What is known of a service."""
        seen = self._of.get(service)
        return StartupTime(median(seconds for _, seconds in seen), len(seen)) if seen else UNKNOWN_STARTUP

    def __len__(self) -> int:
        """Services of which something is known."""
        return len(self._of)


class VolumeReach(Enum):
    """Where the claims of a pod can be mounted.

    ZONE: the filter VolumeBinding keeps the pod inside its zone, so that a move is only planned there.
    """

    NONE = "none"
    ANYWHERE = "anywhere"
    ZONE = "zone"
    NODE = "node"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MoveFacts:
    """About one pod and its service.

    replicas, ready_replicas : pods that the owner wants, and those that are ready
    disruptions_allowed      : least of its PodDisruptionBudgets' status.disruptionsAllowed; None = it has none
    remaining_seconds        : expected rest of its run, if it runs to completion; None = unknown
    cooling_until            : unix seconds until which it, or a pod of its service, is not to move again
    namespace_annotations    : ours
    excluded                 : why its service is left alone; '' = it is not
    """

    service: ServiceKey
    replicas: int
    ready_replicas: int
    startup: StartupTime = UNKNOWN_STARTUP
    disruptions_allowed: int | None = None
    volumes: VolumeReach = VolumeReach.NONE
    remaining_seconds: float | None = None
    cooling_until: float | None = None
    namespace_annotations: Mapping[str, str] = field(default_factory=dict)
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class Occasion:
    """Moves start in [begin, end), for a peak that begins at `peak`. Aware. zone: in which owners' hours are read."""

    begin: datetime
    end: datetime
    peak: datetime
    zone: ZoneInfo

    @classmethod
    def of(cls, window: MoveWindow, peak: datetime, zone: ZoneInfo, now: datetime) -> Occasion:
        """Moves in what is left of a window. A window that is open has begun at a half hour: that moment is past."""
        return cls(max(window.begin, now.astimezone(UTC)), window.end, peak, zone)

    @classmethod
    def at_once(cls, now: datetime, zone: ZoneInfo) -> Occasion:
        """Moves because of the unforeseen: the peak is here."""
        return cls(now, now, now.astimezone(UTC), zone)


class PodFacts:
    """Made and asked under the lock of the tables: one pass over all pods counts those that are ready."""

    def __init__(
        self,
        cluster: AssumingCluster,
        startup: StartupTimes,
        budgets: DisruptionBudgets,
        annotations_of: Callable[[str], Mapping[str, str]],
        cooling_until: CoolingUntil,
        excluded: ExcludedOptions,
    ) -> None:
        """
        startup        : learns from every pod that passes by here
        annotations_of : ours, of a namespace
        """
        self._cluster, self._startup, self._budgets = cluster, startup, budgets
        self._annotations_of, self._cooling_until, self._excluded = annotations_of, cooling_until, excluded
        self._ready: Counter[ServiceKey] = Counter()
        for pod in cluster.state.pods.values():
            if pod.ready is not None and not pod.terminating:
                service = cluster.state.service_key(pod)
                self._ready[service] += 1
                startup.see(pod, service)

    def of(self, pod: PodInfo) -> MoveFacts:
        """Return the facts of one pod."""
        state = self._cluster.state
        service = state.service_key(pod)
        return MoveFacts(
            service=service,
            replicas=round(state.replicas_with(service)),
            ready_replicas=self._ready[service],
            startup=self._startup.of(service),
            disruptions_allowed=self._budgets.allowed_for(pod),
            # Filters keep a pod where its volumes can be mounted: on one node only, it may go nowhere.
            volumes=VolumeReach.ANYWHERE if any(one.claim for one in pod.volumes) else VolumeReach.NONE,
            remaining_seconds=self._remaining(pod, service),
            cooling_until=self._cooling_until(pod),
            namespace_annotations=self._annotations_of(pod.namespace),
            excluded=self._excluded.why(service.namespace, service.kind, service.name),
        )

    def _remaining(self, pod: PodInfo, service: ServiceKey) -> float | None:
        run = self._cluster.run_of(pod, service)
        if run is None:
            return None
        begun = pod.created if pod.started is None else pod.started
        return max(begun + run - self._cluster.now, 0.0)
