"""What the service asks of the scheduling loops, and what it is told: implemented by whoever composes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QueuedPodState:
    """A pod that waits. part: of the queue; since: unix seconds, when it was first seen; priority: higher goes first.

    queue       : `queue/owner` that it waits in, "" = none
    rejected_by : filters that rejected it last; message : why, as in its condition PodScheduled
    """

    namespace: str
    name: str
    uid: str
    profile: str
    part: str
    priority: int
    since: float
    attempts: int
    rejected_by: Sequence[str]
    message: str
    queue: str = ""


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What an owner of a queue has and waits for. share: dominant, of the cluster."""

    queue: str
    owner: str
    order: str
    weight: float
    share: float
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class SchedulingState:
    """The loops as a whole, at one moment.

    profiles       : scheduler names by profile
    is_dry_run     : it decides and writes nothing
    leader         : identity of who holds the Lease as last seen, "" = nobody; None = there is no Lease
    is_leader      : this replica schedules; without a Lease always, in a dry run never
    election_error : why the Lease cannot be read or written, "" = all is well
    waits_for      : what has to be read before it begins, beside what the scorer reads; "" = nothing
    is_alive       : the loop has gone round lately, or has no reason to (not begun, no leader)
    since_cycle    : seconds since then; None = it has not begun
    pending        : pods by part of the queue
    in_flight      : bindings under way
    assumed        : pods assumed to be bound that the watch does not show so yet
    gangs          : PodGroups by phase
    gang_wait      : seconds since the first vain attempt at the complete gang that waits longest; 0 = none waits so
    """

    profiles: Mapping[str, str]
    is_dry_run: bool
    leader: str | None
    is_leader: bool
    election_error: str
    waits_for: str
    is_alive: bool
    since_cycle: float | None
    pending: Mapping[str, int]
    in_flight: int
    assumed: int
    gangs: Mapping[str, int]
    gang_wait: float = 0.0


class SchedulingApi(Protocol):
    """For any thread."""

    def state(self) -> SchedulingState:
        """Quick: probes ask for it."""

    def waiting(self) -> Sequence[QueuedPodState]:
        """All pods that wait, in no order; may take as long as copying them does."""

    def queues(self) -> Sequence[QueueReport]:
        """Owners of queues, with what they have and wait for; may take as long as `waiting`."""
