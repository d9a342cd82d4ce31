"""The scheduling cycle where several replicas place: what is not placed here is passed on, or planned over all nodes.

popped unit --own nodes--> placed
     | no room
     +-- others are still to try --> passed on (annotation), not reported
     +-- the leader's: planned over all nodes, and taken back
            +-- fits on nodes of one other replica ----> passed on to that one
            +-- one decider, or nodes of several ------> their loan is asked for; tried again when they are here
            +-- fits once pods are evicted: on own nodes it is done, of other nodes the loan is asked for
            +-- fits nowhere --------------------------> reported, as by a single scheduler
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from kube.objects.objects import PodInfo
from placement.plugins import Nomination
from scheduler.cycle.cycle import GangRules, SchedulingCycle
from scheduler.cycle.decisions import Decisions, Rejected
from scheduler.cycle.placing import UnitPlacer
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scheduler.shards.one_decider import DecidedAlone
from scheduler.shards.ownership import NodeOwnership
from scheduler.shards.passing_on import PassedOn
from scheduler.shards.responsibility import Responsibility

_LOAN_SECONDS: Final = 0.5
"""When a unit that waits for nodes of others is tried again."""


class Loans(Protocol):
    """scheduler.shards.node_moves.NodeMoves."""

    def want(self, unit: str, nodes: Sequence[str]) -> None:
        """Ask for these nodes of other replicas."""

    def served(self, unit: str) -> None:
        """The unit needs no nodes of others any more."""


class ReadOnlyGangs:
    """Implements GangRules for a plan: what it does to a group is not remembered."""

    def __init__(self, gangs: GangRules) -> None:
        self._gangs = gangs

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        """Return what the real rules say."""
        return self._gangs.in_placing_order(group, pods)

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        """Return what the real rules say."""
        return self._gangs.shortfall(group, placed)

    def scheduled(self, group: str, n: int) -> None:
        """Forget it: the plan is taken back."""

    def attempt_failed(self, group: str, message: str, diagnosis: str = "", *, makes_room: bool = False) -> None:
        """Forget it: the plan is taken back."""


class PlannedNominations:
    """What a plan would evict pods for: `preempt` of a SchedulingCycle that carries nothing out."""

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}

    def __call__(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        self.node_of.update({pod.uid: there.node for pod, there in seats})
        return False


class ShardedCycle:
    """Runs units like a SchedulingCycle, for the one thread that schedules.

    cycle    : over the tables, the ownership among its filters
    planning : another one, whose `preempt` is `nominations`
    pass_on  : writes into pods who is to try them next; must not wait
    """

    def __init__(
        self,
        cycle: SchedulingCycle,
        planning: SchedulingCycle,
        nominations: PlannedNominations,
        ownership: NodeOwnership,
        responsibility: Responsibility,
        *,
        loans: Loans,
        alone: DecidedAlone,
        pass_on: Callable[[Sequence[tuple[PodInfo, PassedOn]]], None],
    ) -> None:
        self._cycle, self._planning, self._nominations = cycle, planning, nominations
        self._ownership, self._responsibility, self._alone = ownership, responsibility, alone
        self._loans, self._pass_on = loans, pass_on

    def run(self, popped: Popped, placer: UnitPlacer) -> Decisions:
        """Decide about a unit."""
        has_others = self._ownership.has_others()
        decisions = self._cycle.run(popped, placer, makes_room=not has_others)
        self._alone.add(queued.pod.uid for queued, _ in decisions.placed if self._responsibility.is_last(queued.pod))
        failed = [one for one in decisions.rejected if one.by] if has_others else []
        if not failed:
            self._loans.served(popped.key)
            return decisions
        decisions.rejected[:] = [one for one in decisions.rejected if not one.by]
        for one in failed:
            if self._responsibility.is_last(one.pods[0].pod):
                self._plan(replace(popped, pods=tuple(one.pods)), one, placer, decisions)
            else:
                self._pass([(queued, self._next(queued.pod)) for queued in one.pods], one, decisions)
        return decisions

    # Inside

    def _plan(self, popped: Popped, failed: Rejected, placer: UnitPlacer, decisions: Decisions) -> None:
        """Find room for pods of the leader on the nodes of all."""
        planned = self._over_all(popped, placer, makes_room=False)
        seats = {queued.pod.uid: node for queued, node in planned.placed}
        if seats:
            self._go_to(popped, seats, failed, decisions)
            return
        self._nominations.node_of.clear()
        planned = self._over_all(popped, placer, makes_room=True)
        others = [node for node in self._nominations.node_of.values() if self._ownership.why_not(node)]
        if others:
            self._borrow(popped, others, failed, decisions)
        elif self._nominations.node_of:
            made = self._cycle.run(popped, placer, makes_room=True)
            self._alone.add(queued.pod.uid for queued, _ in made.placed)
            decisions.add(made)
        else:
            decisions.rejected.extend(planned.rejected)
            decisions.unfinished.extend(planned.unfinished)
            # The plan before may have ended early. What this one has found room for is planned once more.
            known = {queued for one in planned.rejected for queued in one.pods}.union(planned.unfinished)
            if found := [queued for queued in popped.pods if queued not in known]:
                decisions.rejected.append(replace(failed, pods=found, retry_seconds=1.0))

    def _go_to(self, popped: Popped, seats: Mapping[str, str], failed: Rejected, decisions: Decisions) -> None:
        there = [queued for queued in popped.pods if queued.pod.uid in seats]
        left = [queued for queued in popped.pods if queued.pod.uid not in seats]
        others = [node for node in dict.fromkeys(seats.values()) if self._ownership.why_not(node)]
        owners = {self._responsibility.holder_of(self._ownership.shard(node)) for node in seats.values()}
        one_owner = len(owners) == 1 and "" not in owners and others
        if self._responsibility.needs_one_decider(there[0].pod) or (popped.is_gang and not one_owner):
            self._borrow(popped, others, failed, decisions)
            return
        to = [
            (queued, PassedOn(self._next(queued.pod).tries, self._ownership.shard(seats[queued.pod.uid])))
            for queued in there
        ]
        self._pass(to, failed, decisions)
        if left:
            decisions.rejected.append(replace(failed, pods=left, retry_seconds=1.0))

    def _borrow(self, popped: Popped, nodes: Sequence[str], failed: Rejected, decisions: Decisions) -> None:
        self._loans.want(popped.key, nodes)
        message = f"{failed.message} It waits for the loan of {len(nodes)} node(s) of other replicas."
        by = frozenset({self._ownership.name})
        decisions.rejected.append(Rejected(popped.pods, by, message, _LOAN_SECONDS, is_passed_on=True))

    def _pass(self, to: Sequence[tuple[QueuedPodInfo, PassedOn]], failed: Rejected, decisions: Decisions) -> None:
        self._pass_on([(queued.pod, said) for queued, said in to])
        # Until the watch shows the annotation. A write that fails leaves them here, to be tried again.
        by = frozenset({self._ownership.name})
        pods = [queued for queued, _ in to]
        decisions.rejected.append(Rejected(pods, by, failed.message, 5.0, is_passed_on=True))

    def _over_all(self, popped: Popped, placer: UnitPlacer, *, makes_room: bool) -> Decisions:
        with self._ownership.lifted():
            planned = self._planning.run(popped, replace(placer, choices={}), makes_room=makes_room)
            self._planning.take_back(planned)
        return planned

    def _next(self, pod: PodInfo) -> PassedOn:
        return PassedOn(self._responsibility.said(pod).tries + 1)
