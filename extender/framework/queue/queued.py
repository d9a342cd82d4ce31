"""A pod in the queue, what is popped, and what the queue tells of who waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from scorer.cluster.objects import PodInfo

if TYPE_CHECKING:
    from extender.framework.queue.in_flight import Mark
    from extender.framework.queue.unit import Unit
    from extender.framework.queue.unschedulable import Cohort

__all__ = ["SHOWN", "WAITING", "Part", "Popped", "QueuedPod", "WaitingPod"]


class Part(StrEnum):
    """Where a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"
    NOWHERE = "nowhere"  # not yet, or no longer, in the queue


WAITING: Final = frozenset((Part.ACTIVE, Part.BACKOFF, Part.UNSCHEDULABLE))
"""Parts that the members of a gang are in together."""

SHOWN: Final = tuple(part for part in Part if part is not Part.NOWHERE)
"""Parts that a pod which waits can be in."""


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod of ours that has no node. Told apart by identity; below `message` is the queue's own business.

    pod         : as it is now
    unit        : key of its unit
    arrived     : unix seconds, when it was first seen; what it is sorted by
    attempts    : how often it was popped
    rejected_by : plugins that said no last, or the one that keeps it out
    message     : why, for people
    """

    pod: PodInfo
    unit: str
    arrived: float
    attempts: int = 0
    rejected_by: frozenset[str] = frozenset()
    message: str = ""
    # Times below are the queue's own (scorer/own_time.py).
    first_seen: float = field(default=0.0, repr=False)  # when it arrived
    number: int = field(default=0, repr=False)  # how many pods were seen before it
    home: Unit = field(default=None, repr=False)  # type: ignore[assignment] # the queue knows none without
    part: Part = field(default=Part.NOWHERE, repr=False)
    entered: float = field(default=0.0, repr=False)  # its part
    waits_since: float = field(default=0.0, repr=False)  # when it was let in, or tried last; not changed while active
    until: float = field(default=0.0, repr=False)  # its backoff lasts; of a gang: Unit.until
    timer: tuple[float, int] | None = field(default=None, repr=False)  # when it moves on by itself, and its number
    mark: Mark | None = field(default=None, repr=False)  # in flight: the events before it was popped
    version: int = field(default=0, repr=False)  # in flight: Unit.version when it was popped
    changed: bool = field(default=False, repr=False)  # in flight: so that it may fit now
    cohort: Cohort | None = field(default=None, repr=False)  # unschedulable: whom it shares questions with


@dataclass(frozen=True, slots=True)
class Popped:
    """Pods to be placed now, in the order in which they arrived. key: of their unit; is_gang: all of them or none."""

    key: str
    is_gang: bool
    pods: tuple[QueuedPod, ...]


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod in the queue at one moment. The rest is as in QueuedPod.

    arrived, since : unix seconds, in the queue and in its part
    is_paused      : its gate only asked it to wait, so that it would be let in by itself
    """

    pod: PodInfo
    unit: str
    part: Part
    arrived: float
    attempts: int
    rejected_by: frozenset[str]
    message: str
    since: float
    is_paused: bool = False

    @classmethod
    def of(cls, queued: QueuedPod, ahead: float) -> WaitingPod:
        """As it is now. ahead: seconds from the queue's own time to unix seconds."""
        return cls(
            pod=queued.pod,
            unit=queued.unit,
            part=queued.part,
            arrived=queued.first_seen + ahead,
            attempts=queued.attempts,
            rejected_by=queued.rejected_by,
            message=queued.message,
            since=queued.entered + ahead,
            is_paused=queued.part is Part.GATED and queued.timer is not None,
        )

    @property
    def uid(self) -> str:
        """Of the pod."""
        return self.pod.uid
