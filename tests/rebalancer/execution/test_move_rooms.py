"""Room is held on the target before a pod goes, once, and given up when its move ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from rebalancer.execution.move_rooms import MoveRoom, MoveRooms
from rebalancer.execution.plan_executor import Executor
from rebalancer.execution.plan_records import PlanRecords
from rebalancer.execution.plan_wire import moment
from tests.rebalancer.execution.small_cluster import Killed, SmallCluster, move_of, states
from tests.rebalancer.execution.test_executor import OPTIONS, plan, play, run, small_cluster

REQUESTS: Mapping[str, float] = {"cpu": 0.25, "memory": 2.0**30, "pods": 1.0}


class World:
    def __init__(self, *, installed: bool = True, requests: Mapping[str, float] | None = REQUESTS) -> None:
        self.cluster: SmallCluster = small_cluster()
        self.cluster.reservations = {} if installed else None
        self.counts: Counter[MoveRoom] = Counter()
        (self.pod,) = self.cluster.add_app("cart", 1)
        self.name = f"move-{self.pod['metadata']['uid']}"
        self.requests = requests
        plan(self.cluster, move_of(self.pod))
        self.held_at_eviction: list[Any] = []
        self.cluster.fault = self._look

    def _look(self, number: int, when: str) -> bool:
        if self.cluster.requests[number].endswith("/eviction") and when == "before":
            held = (self.cluster.reservations or {}).get(self.name)
            self.held_at_eviction.append(None if held is None else dict(held.get("status", {})))
        return False

    def count(self, room: MoveRoom) -> None:
        self.counts[room] += 1

    def executor(self) -> Executor:
        cluster = self.cluster
        rooms = MoveRooms(cluster, lambda uid: self.requests, count=self.count, clock=lambda: cluster.now)
        return Executor(
            cluster, PlanRecords(cluster), OPTIONS, rooms=rooms, clock=lambda: cluster.now, unsure_seconds=3
        )

    def until_evicted(self) -> None:
        executor = self.executor()
        for _ in range(50):
            run(executor.step())
            if self.cluster.evicted:
                return
            self.cluster.tick()
        raise AssertionError("the pod was not evicted")


def test_the_room_is_held_when_the_pod_goes_and_given_up_at_the_end() -> None:
    world = World()
    began = world.cluster.now
    world.until_evicted()
    ((name, one),) = (world.cluster.reservations or {}).items()
    assert name == world.name
    assert one["spec"] == {
        "owners": {"matchLabels": {"app": "cart"}},
        "resources": {"cpu": "250m", "memory": str(2**30), "pods": "1"},
        "lifetime": "15m",
        "node": "b",
    }
    assert one["metadata"]["labels"] == {"forecast-scheduler.io/made-by": "rebalancer"}
    assert [owner["kind"] for owner in one["metadata"]["ownerReferences"]] == ["RebalancePlan"]
    ((at_eviction),) = world.held_at_eviction
    assert (at_eviction["phase"], at_eviction["node"]) == ("Available", "b")
    assert at_eviction["since"] >= moment(began).strftime("%Y-%m-%dT%H:%M:%SZ")
    play(world.cluster, world.executor())
    assert list(states(world.cluster).values()) == ["done"]
    assert world.cluster.reservations == {}
    assert world.counts[MoveRoom.HELD] >= 1


@pytest.mark.parametrize(
    ("world", "counts"),
    [
        pytest.param(lambda: World(installed=False), {MoveRoom.ABSENT: 1}, id="not installed"),
        pytest.param(lambda: World(requests=None), {MoveRoom.FAILED: 1}, id="pod not known"),
        pytest.param(lambda: World(requests={}), {}, id="no request needs no room"),
    ],
)
def test_without_room_the_move_goes_on_and_is_counted(world: Any, counts: dict[MoveRoom, int]) -> None:
    made = world()
    play(made.cluster, made.executor())
    assert list(states(made.cluster).values()) == ["done"]
    assert made.held_at_eviction == [None]
    assert made.counts == counts


@pytest.mark.parametrize("what", ["POST", "PATCH"])
def test_a_missing_right_costs_the_room_and_not_the_move(what: str) -> None:
    world = World()
    world.cluster.forbidden = f"{what} /apis/forecast-scheduler.io/v1alpha1/namespaces"
    play(world.cluster, world.executor())
    assert list(states(world.cluster).values()) == ["done"]
    assert world.counts == {MoveRoom.FAILED: 1}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(40))
def test_after_a_kill_at_any_request_the_pod_still_goes_once_with_its_room_held(number: int, when: str) -> None:
    world = World()
    look, first = world.cluster.fault, len(world.cluster.requests)

    def fault(at: int, moment_of: str) -> bool:
        look(at, moment_of)
        if at == first + number and moment_of == when:
            raise Killed
        return False

    world.cluster.fault = fault
    try:
        play(world.cluster, world.executor())
    except Killed:
        world.cluster.tick()
        play(world.cluster, world.executor())
    assert list(states(world.cluster).values()) == ["done"]
    assert world.cluster.evicted == [world.pod["metadata"]["uid"]]
    assert all(held is not None and held["phase"] == "Available" for held in world.held_at_eviction)


@pytest.mark.parametrize("lost", ["before", "after"])
@pytest.mark.parametrize("what", ["POST", "PATCH"])
def test_a_lost_answer_is_asked_about(what: str, lost: str) -> None:
    world = World()
    look, open_faults = world.cluster.fault, [1]

    def fault(at: int, moment_of: str) -> bool:
        look(at, moment_of)
        request = world.cluster.requests[at]
        if request.startswith(what) and "/reservations" in request and moment_of == lost and open_faults:
            return bool(open_faults.pop())
        return False

    world.cluster.fault = fault
    play(world.cluster, world.executor())
    assert not open_faults
    assert list(states(world.cluster).values()) == ["done"]
    assert [held and held["phase"] for held in world.held_at_eviction] == ["Available"]
    assert world.counts == {MoveRoom.HELD: 1}


def test_room_that_a_scheduler_has_given_a_node_already_is_left_as_it_is() -> None:
    world = World()
    reservations = world.cluster.reservations
    assert reservations is not None
    world.until_evicted()
    reservations[world.name]["status"] = {"phase": "Taken", "node": "b"}
    play(world.cluster, world.executor())
    assert list(states(world.cluster).values()) == ["done"]
