"""What is known about a pod, apart from the pod itself, when the cost of its move is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from zoneinfo import ZoneInfo

from forecast.service_key import ServiceKey
from rebalancer.costs.startup_times import UNKNOWN_STARTUP, StartupTime
from rebalancer.timing.windows import MoveWindow


class VolumeBinding(Enum):
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
    """

    service: ServiceKey
    replicas: int
    ready_replicas: int
    startup: StartupTime = UNKNOWN_STARTUP
    disruptions_allowed: int | None = None
    volumes: VolumeBinding = VolumeBinding.NONE
    remaining_seconds: float | None = None
    cooling_until: float | None = None
    namespace_annotations: Mapping[str, str] = field(default_factory=dict)


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
