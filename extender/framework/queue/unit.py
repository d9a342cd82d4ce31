"""What is queued and popped as one: pods of one controller and priority, a bare pod, or a gang."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from extender.framework.queue.lazy_heap import LazyHeap
from extender.framework.queue.queued import Part, QueuedPod
from scorer.cluster.objects import PodInfo

__all__ = ["Unit", "UnitOf", "Units", "unit_by_owner"]


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

    Anybody may name any controller: only pods of one namespace share. No namespace has a colon in its name.
    """
    key = f"owner:{pod.namespace}/{pod.owner_uid}" if pod.owner_uid else f"pod:{pod.uid}"
    return UnitOf(key, None, False)


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
        self.members: dict[str, QueuedPod] = {}
        self.active: LazyHeap[QueuedPod] = LazyHeap()
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

    def paused(self) -> list[QueuedPod]:
        """Members of a gang that a gate only asked to wait, one by one: they go on with the first that does."""
        if not self.is_gang or not self.n_gated:
            return []
        return [member for member in self.in_part(Part.GATED) if member.timer is not None]

    def in_part(self, *parts: Part) -> list[QueuedPod]:
        """Members that are in one of these parts."""
        return [member for member in self.members.values() if member.part in parts]
