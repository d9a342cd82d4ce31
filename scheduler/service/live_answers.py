"""The answers of the service, read from the parts of a running scheduler. Nothing here takes the lock of the tables: a
loop that hangs holds it, and then the probes must answer all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kube.leader_election.lease import LeaseStatus
from kube.objects.objects import PodInfo
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.scheduling_answers import QueuedPod, QueueShare, SchedulingState, moment

_HANGS_SECONDS: Final = 60.0
"""A loop waits for pods a second or so at a time, and a cycle takes milliseconds, with preemption perhaps seconds."""


class Bindings(Protocol):
    """scheduler.binding.binding_cycles.BindingCycles."""

    @property
    def in_flight(self) -> int:
        """Pods that are being bound."""

    @property
    def throttled(self) -> int:
        """Answers 429 so far."""


@dataclass(frozen=True, slots=True)
class LiveScheduling:
    """Implements SchedulingApi.

    profiles    : scheduler names by profile
    lease       : None = there is none, and this replica always schedules
    since_cycle : seconds since the loop last went round; None = it has not begun
    assumed     : how many pods are assumed
    gangs       : PodGroups by phase
    gang_wait   : seconds since the first vain attempt at the complete gang that has waited longest; 0 = none waits so
    queue_of    : `queue/owner` of a pod, "" = none
    abilities   : what /readyz says in addition
    shares      : owners of queues, with what they have, of these pods that wait
    waits_for   : what has to be read before it begins, in addition to what the scorer reads; "" = nothing
    """

    profiles: Mapping[str, str]
    queue: SchedulingQueue
    bindings: Bindings
    since_cycle: Callable[[], float | None]
    assumed: Callable[[], int]
    gangs: Callable[[], Mapping[str, int]]
    lease: Callable[[], LeaseStatus] | None = None
    waits_for: Callable[[], str] = lambda: ""
    gang_wait: Callable[[], float] = lambda: 0.0
    is_dry_run: bool = False
    abilities: Callable[[], Mapping[str, Any]] = dict
    queue_of: Callable[[PodInfo], str] = lambda pod: ""
    shares: Callable[[Iterable[PodInfo]], Sequence[QueueShare]] = lambda waiting: ()

    def state(self) -> SchedulingState:
        lease = None if self.lease is None else self.lease()
        is_leader = not self.is_dry_run and (lease is None or lease.is_leader)
        goes_round, since = is_leader or self.is_dry_run, self.since_cycle()
        return SchedulingState(
            profiles=self.profiles,
            is_dry_run=self.is_dry_run,
            leader=None if lease is None else lease.holder,
            is_leader=is_leader,
            election_error=None if lease is None else lease.last_error or None,
            waits_for=self.waits_for() or None,
            is_alive=not goes_round or since is None or since < _HANGS_SECONDS,
            since_cycle=since,
            pending=self.queue.lengths(),
            in_flight=self.bindings.in_flight,
            assumed=self.assumed(),
            gangs=self.gangs(),
            gang_wait=self.gang_wait(),
        )

    def waiting(self) -> Sequence[QueuedPod]:
        return [
            QueuedPod(
                namespace=one.pod.namespace,
                name=one.pod.name,
                uid=one.pod.uid,
                profile=one.pod.scheduler_name,
                part=str(one.part),
                priority=one.pod.priority,
                since=moment(one.arrived),
                attempts=one.attempts,
                rejected_by=sorted(one.rejected_by),
                message=one.message,
                queue=self.queue_of(one.pod) or None,
            )
            for one in self.queue.waiting()
        ]

    def queues(self) -> Sequence[QueueShare]:
        return self.shares(one.pod for one in self.queue.waiting())
