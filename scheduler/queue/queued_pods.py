"""A pod in the queue with its unit and cohort, what is popped, and what the queue reports about waiting pods. A unit is
the pods of one controller and priority, a bare pod, or a gang.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from kube.objects.objects import PodInfo
from scheduler.queue.in_flight import Mark
from scheduler.queue.lazy_heap import LazyHeap
from scheduler.queue.plugin_calls import Questions


@dataclass(frozen=True, slots=True)
class UnitOf:
    """Which unit a pod is of.

    key     : pods of the same key are one unit; of a gang "namespace/name" of its PodGroup, as events name it
    since   : unix seconds, what the unit is sorted by within its priority; None = when its oldest active pod arrived
    is_gang : all or none of it
    flow    : that the unit is of; units of one key are of one flow. Of a gang, that of its first pod
    due     : unix seconds, the latest moment it may start; of a gang, the first of its pods' moments
    """

    key: str
    since: float | None
    is_gang: bool
    flow: str = ""
    due: float = math.inf


class Units(Protocol):
    """Asked once per pod, and again when the pod or its group has changed."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        """Quick, and no exceptions: asked under the lock of the tables."""


def unit_by_owner(pod: PodInfo) -> UnitOf:
    """That of a pod that is in no gang: the pods of its controller, or the pod alone.

    Any client may name any controller: only pods of one namespace share. No namespace has a colon in its name.
    """
    key = f"owner:{pod.namespace}/{pod.owner_uid}" if pod.owner_uid else f"pod:{pod.uid}"
    return UnitOf(key, None, False)


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


class Unit:
    """A unit while there are pods of it.

    key      : as UnitOf says
    number   : how many units were there before it
    is_gang  : all waiting members are in one part, back off as one and are popped as one
    priority : of all its pods; None = a gang, whose pods may differ
    since    : unix seconds, None = as its pods say
    flow     : that it is sorted in
    due      : unix seconds, inf = none
    members  : all its pods by UID, in flight and gated ones too
    active   : those that are active, by number
    attempts : of a gang, since one of it was placed
    until    : own seconds; of a gang, how long it backs off
    version  : rises when members in flight are to be tried again, whatever rejects them
    n_gated  : members that the gate keeps out
    place    : (priority, since, due) as it is sorted now; None = nothing is active
    rank     : what the sort makes of it
    due_rank : among those of its flow that have a due time; None = it is not among them
    """

    __slots__ = (
        "active", "attempts", "due", "due_rank", "flow", "is_gang", "key", "members", "n_gated", "number", "place",
        "priority", "rank", "since", "until", "version",
    )  # fmt: skip

    def __init__(self, of: UnitOf, number: int, priority: int | None) -> None:
        self.key, self.is_gang, self.since = of.key, of.is_gang, of.since
        self.flow, self.due = of.flow, of.due
        self.number, self.priority = number, priority
        self.members: dict[str, QueuedPodInfo] = {}
        self.active: LazyHeap[QueuedPodInfo] = LazyHeap()
        self.attempts = self.version = self.n_gated = 0
        self.until = 0.0
        self.place: tuple[int, float, float] | None = None
        self.rank: tuple[tuple[float, ...], str, int] | None = None
        self.due_rank: tuple[int, float, int] | None = None

    def follow(self, of: UnitOf) -> None:
        """One of its pods says this of it now."""
        self.since = of.since
        if of.due != self.due:
            self.due = min(self.due, of.due) if self.is_gang else of.due

    def paused(self) -> list[QueuedPodInfo]:
        """Members of a gang that a gate only asked to wait, one by one: they go on with the first that does."""
        if not self.is_gang or not self.n_gated:
            return []
        return [member for member in self.in_part(Part.GATED) if member.timer is not None]

    def in_part(self, *parts: Part) -> list[QueuedPodInfo]:
        """Members that are in one of these parts."""
        return [member for member in self.members.values() if member.part in parts]


class Cohort:
    """pods: in the order in which they came; example: one of them; questions: asked about an event for all of them."""

    __slots__ = ("example", "key", "pods", "questions")

    def __init__(self, key: Hashable, example: PodInfo, questions: Questions) -> None:
        self.key, self.example, self.questions = key, example, questions
        self.pods: dict[QueuedPodInfo, None] = {}


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod of ours that has no node. Compared by identity; below `message` is the queue's own business.

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
    # Times below are the queue's own (cluster/monotonic_time.py).
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
    pods: tuple[QueuedPodInfo, ...]


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
    def of(cls, queued: QueuedPodInfo, ahead: float) -> WaitingPod:
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
        return self.pod.uid
