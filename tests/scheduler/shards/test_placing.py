"""A cycle of one of several replicas: placed here, passed on, borrowed for, evicted for, or reported; never lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from placement.plugins import Nomination
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import Decisions, Rejected
from scheduler.cycle.placing import UnitPlacer
from scheduler.queue.queued_pods import Popped, QueuedPodInfo, unit_by_owner
from scheduler.shards.assignment import dispatcher
from scheduler.shards.one_decider import DecidedAlone
from scheduler.shards.passing_on import PASSED_ON, PassedOn
from scheduler.shards.responsibility import Responsibility
from scheduler.shards.sharded_cycle import PlannedNominations, ShardedCycle
from testing.objects import pod_info
from tests.scheduler.shards.shard_world import Replica, node

PODS = tuple(QueuedPodInfo(pod_info(name), "unit", 0.0) for name in ("one", "two"))
LAST = tuple(QueuedPodInfo(pod_info(name, annotations={PASSED_ON: "9"}), "unit", 0.0) for name in ("one", "two"))
NO_ROOM, WITH_VICTIMS = "no room", "no room, even with victims"


@dataclass
class _Placer:
    choices: dict[str, Any] = field(default_factory=dict)


class Cycle:
    """Stands for a SchedulingCycle: `seats` and `victims` are nodes of pods by name, without and with evictions."""

    def __init__(self, nominations: PlannedNominations | None = None) -> None:
        self.seats: dict[str, str] = {}
        self.victims: dict[str, str] = {}
        self.as_one = False  # rejects all together, as pods that are alike
        self.seats_with_room: dict[str, str] | None = None
        self.nominations, self.runs, self.taken_back = nominations, list[bool](), list[str]()

    def run(self, popped: Popped, placer: UnitPlacer, *, makes_room: bool = True) -> Decisions:
        self.runs.append(makes_room)
        decisions, left = Decisions(), list[QueuedPodInfo]()
        seats = self.seats if not makes_room or self.seats_with_room is None else self.seats_with_room
        for queued in popped.pods:
            name = queued.pod.name
            if name in seats:
                decisions.placed.append((queued, seats[name]))
                continue
            if makes_room and name in self.victims and self.nominations is not None:
                self.nominations([(queued.pod, Nomination(self.victims[name], ()))])
            left.append(queued)
        message = WITH_VICTIMS if makes_room else NO_ROOM
        for pods in [left] if self.as_one and left else [[queued] for queued in left]:
            decisions.rejected.append(Rejected(pods, frozenset({"Fit"}), message))
        return decisions

    def take_back(self, decisions: Decisions) -> None:
        self.taken_back += [queued.pod.name for queued, _ in decisions.placed]


class World:
    """Replica a owns shard 0 with node-0, b shard 1 with node-1, c shard 2 with node-2 and node-3."""

    def __init__(self, *, reason: str = "") -> None:
        self.replica = Replica(*(node(f"node-{i}", min(i, 2)) for i in range(4)), owns={0})
        self.own, self.nominations = Cycle(), PlannedNominations()
        self.plan = Cycle(self.nominations)
        responsibility = Responsibility(
            self.replica.cluster,
            "a",
            passes=1,
            shard_of=self.replica.ownership.shard,
            unit_of=unit_by_owner,
            reason=lambda pod: reason,
        )
        responsibility.use(dispatcher({0: "a", 1: "b", 2: "c"}, {}))
        self.wanted, self.served_units = dict[str, list[str]](), list[str]()
        self.passed: dict[str, PassedOn] = {}
        self.alone = DecidedAlone(lambda: True)
        self.cycle = ShardedCycle(
            cast(SchedulingCycle, self.own),
            cast(SchedulingCycle, self.plan),
            self.nominations,
            self.replica.ownership,
            responsibility,
            loans=self,
            alone=self.alone,
            pass_on=lambda to: self.passed.update({pod.name: said for pod, said in to}),
        )

    def want(self, unit: str, nodes: Sequence[str]) -> None:
        self.wanted[unit] = list(nodes)

    def served(self, unit: str) -> None:
        self.served_units.append(unit)

    def run(self, pods: tuple[QueuedPodInfo, ...] = LAST, *, is_gang: bool = False) -> Decisions:
        """Every pod is in exactly one of the decisions."""
        decisions = self.cycle.run(Popped("unit", is_gang, pods), cast(UnitPlacer, _Placer()))
        found = [queued.pod.uid for queued, _ in decisions.placed] + [one.pod.uid for one in decisions.unfinished]
        found += [queued.pod.uid for one in decisions.rejected for queued in one.pods]
        assert sorted(found) == sorted(one.pod.uid for one in pods)
        assert not self.replica.ownership._is_lifted
        return decisions


def messages(decisions: Decisions) -> list[tuple[str, bool]]:
    return [(one.message, one.is_passed_on) for one in decisions.rejected]


def test_what_is_placed_on_own_nodes_is_placed_without_evictions() -> None:
    world = World()
    world.own.seats = {"one": "node-0", "two": "node-0"}
    assert len(world.run(PODS).placed) == 2
    assert world.own.runs == [False] and world.served_units == ["unit"] and not world.passed


def test_one_with_all_nodes_is_a_single_scheduler() -> None:
    world = World()
    for name in ("node-1", "node-2", "node-3"):
        world.replica.cluster.delete(node(name, 0))
    decisions = world.run(PODS)
    assert world.own.runs == [True] and not world.plan.runs
    assert messages(decisions) == [(WITH_VICTIMS, False)] * 2


def test_a_pod_without_room_is_passed_on_and_not_reported() -> None:
    world = World()
    world.own.seats = {"one": "node-0"}
    decisions = world.run(PODS)
    assert world.passed == {"two": PassedOn(1)}
    assert messages(decisions) == [(NO_ROOM, True)] and not world.plan.runs


def test_pods_that_fit_after_evictions_on_own_nodes_have_them_carried_out() -> None:
    world = World()
    world.plan.victims = {"one": "node-0", "two": "node-0"}
    decisions = world.run()
    assert world.own.runs == [False, True, True] and not world.wanted
    assert messages(decisions) == [(WITH_VICTIMS, False)] * 2


def test_pods_that_fit_after_evictions_on_nodes_of_others_borrow_these() -> None:
    world = World()
    world.plan.victims = {"one": "node-1", "two": "node-1"}
    world.run()
    assert world.wanted == {"unit": ["node-1"]} and True not in world.own.runs


def test_pods_that_fit_nowhere_are_reported() -> None:
    assert messages(World().run()) == [(WITH_VICTIMS, False)] * 2


@pytest.mark.parametrize("left", ["two", "none"])
def test_a_plan_with_evictions_that_finds_room_at_last_loses_no_pod(left: str) -> None:
    """The first plan may have ended early, to give the lock to the watch."""
    world = World()
    world.own.as_one = world.plan.as_one = True
    world.plan.seats_with_room = {name: "node-1" for name in ("one", "two") if name != left}
    decisions = world.run()
    assert world.plan.taken_back and not world.replica.cluster.assumed.uids()
    assert not decisions.placed


def test_a_gang_goes_to_the_one_owner_of_all_its_nodes_or_borrows() -> None:
    for seats, is_passed in (({"one": "node-2", "two": "node-3"}, True), ({"one": "node-1", "two": "node-2"}, False)):
        world = World()
        world.own.as_one = world.plan.as_one = True
        world.plan.seats = seats
        world.run(is_gang=True)
        assert bool(world.passed) == is_passed and bool(world.wanted) != is_passed
