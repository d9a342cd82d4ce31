"""Room is kept for nominated pods, from pods that are no more important, for as long as it is of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import Phase, PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import Hint, Nomination
from placement.status import Code, Status
from scheduler.preemption.options import PreemptionOptions
from tests.scheduler.preemption.made_up import NOW, MadeUpGangs, World, node, pod


def test_room_is_kept_from_pods_of_equal_and_lower_priority() -> None:
    world = World([node("a", cpu=4, pods=3), node("b", cpu=4)], [])
    assert world.nominated.nominate(pod("n", cpu=3, priority=5), "a")
    assert world.feasible(pod("x", cpu=1, priority=5)) == {"a", "b"}
    assert world.feasible(pod("x", cpu=2, priority=5)) == {"b"}
    assert world.feasible(pod("x", cpu=2, priority=4)) == {"b"}
    assert world.feasible(pod("x", cpu=2, priority=6)) == {"a", "b"}
    assert world.feasible(pod("n", cpu=4, priority=5)) == {"a", "b"}  # its own room
    world.nominated.nominate(pod("m", cpu=0, priority=9), "a")
    world.nominated.nominate(pod("o", cpu=0, priority=9), "a")
    assert world.feasible(pod("x", cpu=0, priority=5)) == {"b"}  # three pods and no more
    assert world.feasible(pod("x", cpu=0, priority=6)) == {"a", "b"}


def test_a_nomination_ends_when_the_pod_sits_and_comes_back_when_that_is_taken_back() -> None:
    world = World([node("a"), node("b")], [])
    x = pod("x", priority=5)
    world.put(x)
    world.nominated.nominate(x, "a")
    world.put(replace(x, node="a"))
    assert world.nominated.of("x") is None and world.nominated.rows() == [] and world.ended == []
    world.put(x)  # the binding failed
    assert world.nominated.of("x") is not None and world.ended == []
    world.put(replace(x, node="a"))
    world.put(replace(x, node="a", phase=Phase.RUNNING))  # it was bound after all
    world.delete("x")
    assert world.nominated.of("x") is None
    world.nominated.nominate(pod("y"), "a")
    world.put(pod("y", "b"))
    assert world.ended == [("y", "a")] and len(world.nominated) == 0


def test_a_pod_that_changes_while_it_is_assumed_is_nominated_again_when_that_is_taken_back() -> None:
    world = World([node("a")], [])
    x = pod("x", priority=5)
    world.put(x)
    world.nominated.nominate(x, "a", ["gone"])
    world.put(replace(x, node="a"))
    world.put(replace(x, node="a", labels={"seen": "yes"}))  # somebody labels it before it is bound
    world.put(x)
    found = world.nominated.of("x")
    assert found is not None and found.node == "a" and not found.victims


def test_room_that_is_on_its_way_and_kept_for_no_pod_costs_nobody() -> None:
    there = [pod(f"p{i}", "a", started=float(i)) for i in range(4)]
    world = World([node("b", cpu=4), node("a", cpu=4)], [*there, *(pod(f"q{i}", "b", started=9.0) for i in range(4))])
    x, y = pod("x", priority=5), pod("y", priority=5)
    world.nominated.nominate(x, "a", ["p3"])
    world.nominated.nominate(y, "a", ["p2", "p3"])
    world.nominated.clear("x")  # its eviction has begun, and y's goes on
    assert world.preempts(x) == ("a", ["p2", "p3"])
    world.nominated.nominate(x, "a", ["p2", "p3"])
    found = world.preempts(pod("z", priority=5))
    assert found is not None and found[0] == "b"


def test_a_nomination_ends_with_the_pod_or_its_node() -> None:
    world = World([node("a"), node("b")], [])
    for name, on in (("x", "a"), ("y", "b"), ("z", "b")):
        world.put(pod(name))
        assert world.nominated.nominate(pod(name), on)
    world.delete("x")
    assert world.ended == [("x", "a")]
    world.put(replace(pod("z"), phase=Phase.FAILED))
    assert world.ended[1:] == [("z", "b")]
    world.view.cluster.apply(world.view.state.delete_node("b"))
    assert world.ended[2:] == [("y", "b")] and len(world.nominated) == 0
    assert not world.nominated.nominate(pod("y"), "b") and not world.nominated.nominate(pod("y"), "nowhere")
    world.put(pod("s", "a"))
    assert not world.nominated.nominate(pod("s"), "a")  # it sits already


def test_after_a_restart_nominations_are_read_from_pods_that_wait() -> None:
    world = World([node("a")], [])
    waiting = [pod("x", nominated_node="a"), pod("y", nominated_node="gone"), pod("z")]
    world.nominated.adopt([*waiting, replace(pod("s", "a"), nominated_node="a")])
    assert world.nominated.of("x") is not None and len(world.nominated) == 1


def test_a_rebuild_drops_what_the_tables_know_better() -> None:
    world = World([node("a")], [])
    world.put(pod("x"))
    for name in ("x", "unknown"):
        world.nominated.nominate(pod(name), "a")
    world.nominated.rebuild()
    assert [world.nominated.of(name) is not None for name in ("x", "unknown")] == [True, False]


steps = st.lists(
    st.tuples(
        st.integers(0, 5),  # pod
        st.sampled_from(("nominate", "nominate", "clear", "sit", "wait", "delete")),
        st.sampled_from(("a", "b")),
        st.sampled_from((1, 5, 9)),
        st.sampled_from((0.5, 2.0)),
    ),
    max_size=40,
)


@given(steps, st.lists(st.tuples(st.integers(0, 5), st.sampled_from((0, 1, 5, 7, 9))), min_size=1, max_size=4))
def test_what_is_kept_is_the_sum_over_the_nominated_pods(
    of_steps: Sequence[tuple[int, str, str, int, float]], asked: Sequence[tuple[int, int]]
) -> None:
    world = World([node("a"), node("b")], [])
    for number, what, on, priority, cpu in of_steps:
        one = pod(f"p{number}", cpu=cpu, priority=priority)
        match what:
            case "nominate":
                world.nominated.nominate(one, on)
            case "clear":
                world.nominated.clear(one.uid)
            case "delete":
                world.delete(one.uid)
            case _:
                world.put(replace(one, node=on if what == "sit" else ""))
        for other, threshold in asked:
            uid = f"p{other}"
            kept_pods, kept = world.nominated.kept(pod(uid, priority=threshold), 2)
            nominated = [world.nominated.of(f"p{i}") for i in range(6) if f"p{i}" != uid]
            for row in range(2):
                here = [n for n in nominated if n is not None and n.row == row and n.pod.priority >= threshold]
                assert kept_pods[row] == len(here)
                cores = kept["cpu"][row] if "cpu" in kept else 0
                assert cores == sum(n.units["cpu"] for n in here)


def others(name: str, node: str = "a", *, priority: int = 5, cpu: float = 3) -> PodInfo:
    """A pod of another scheduler that nominated it."""
    return replace(pod(name, cpu=cpu, priority=priority, nominated_node=node), scheduler_name="other")


def shared_world() -> World:
    return World([node("a", cpu=4), node("b", cpu=4)], [], is_ours=lambda pod: pod.scheduler_name != "other")


def test_room_is_kept_for_pods_that_another_scheduler_nominated() -> None:
    world = shared_world()
    world.put(others("x"))
    assert world.feasible(pod("p", cpu=2, priority=5)) == {"b"}
    assert world.feasible(pod("p", cpu=2, priority=6)) == {"a", "b"}
    world.put(others("x", "b"))
    assert world.feasible(pod("p", cpu=2, priority=5)) == {"a"} and world.ended == [("x", "a")]
    world.put(others("x", "b", cpu=1))
    assert world.feasible(pod("p", cpu=2, priority=5)) == {"a", "b"}


def test_room_for_others_ends_as_they_say() -> None:
    world = shared_world()
    for is_deleted in (False, True):
        world.put(others("x"))
        assert world.nominated.of("x") is not None
        if is_deleted:
            world.delete("x")
        else:
            world.put(others("x", ""))
        assert world.nominated.of("x") is None
    world.put(others("x"))
    world.put(replace(others("x"), node="a"))  # counted where it sits from now on
    assert world.ended == [("x", "a"), ("x", "a")] and len(world.nominated) == 0
    assert world.feasible(pod("p", cpu=2, priority=5)) == {"b"}


def test_the_node_of_others_may_be_known_later_than_the_nomination() -> None:
    world = shared_world()
    world.put(others("x", "c"))
    world.view.cluster.apply(world.view.state.put_node(node("c", cpu=4)))
    assert world.feasible(pod("p", cpu=2)) == {"a", "b"}
    world.view.cluster.apply(world.view.state.delete_node("c"))
    world.view.cluster.apply(world.view.state.put_node(node("c", cpu=4)))
    assert world.feasible(pod("p", cpu=2)) == {"a", "b"}


def test_others_keep_their_nominations_when_more_important_pods_take_the_node() -> None:
    world = shared_world()
    world.put(others("x", priority=1))
    world.nominated.nominate(pod("ours", priority=1), "a")
    world.nominated.clear_lower("a", 5)
    assert world.nominated.of("ours") is None and world.nominated.of("x") is not None


def test_our_own_status_is_not_followed() -> None:
    world = shared_world()
    world.put(pod("ours", nominated_node="a"))
    assert len(world.nominated) == 0
    world.nominated.start_over(world.view.state.pods.values())
    assert world.nominated.of("ours") is not None


def status(answer: Nomination | Status) -> Status:
    assert isinstance(answer, Status)
    return answer


# Which node, by what upstream compares, one thing after the other


# Who goes


# Newly started pods are protected


@pytest.mark.parametrize(
    ("sitting", "protected"),
    [
        (pod("p", "a", cpu=4, started=None, created=NOW - 10), True),  # not started yet: counted from its creation
        (pod("p", "a", cpu=4, started=None, created=NOW - 100), False),
        (pod("p", "a", cpu=4, started=NOW + 10), True),  # by the clock of a node that is ahead
        (pod("p", "a", cpu=4, started=NOW + 1e6), False),  # by no clock at all
    ],
)
def test_who_is_young(sitting: PodInfo, protected: bool) -> None:
    assert (World([node("a")], [sitting]).preempts(pod("x", priority=1)) is None) is protected


def test_nobody_is_protected_from_critical_pods_nor_when_switched_off() -> None:
    young = [pod("p", "a", cpu=4, started=NOW)]
    assert World([node("a")], young).preempts(pod("x", priority=2_000_000_000)) == ("a", ["p"])
    options = PreemptionOptions(protect_started=0)
    assert World([node("a")], young, options=options).preempts(pod("x", priority=1)) == ("a", ["p"])


# Eligibility


def test_a_nominated_pod_waits_for_the_victims_of_others_on_its_node_before_they_are_seen_to_go() -> None:
    there = [pod(name, "a", cpu=1, started=float(started)) for started, name in enumerate("stuvpq")]
    world = World([node("a", cpu=6), node("b", cpu=2)], [*there, pod("r", "b", cpu=2, priority=1)])
    x, y = (pod(name, cpu=2, priority=2) for name in "xy")
    world.nominated.nominate(x, "a", ["p", "q"])
    world.nominated.nominate(y, "a", ["u", "v", "p", "q"])
    world.delete("p")
    world.delete("q")
    assert world.feasible(x) == set()  # the room of y is kept, too
    assert status(world.asked(x)).reason == (
        "preemption: not eligible due to a victim that has not left the nominated node yet."
    )
    world.nominated.clear("y")
    assert world.feasible(x) == {"a"}


def test_after_a_restart_the_status_of_the_pod_and_terminating_pods_are_enough() -> None:
    world = World([node("a"), node("b")], [pod("p", "a", cpu=4, terminating=True), pod("q", "b", cpu=4)])
    x = pod("x", cpu=4, priority=1, nominated_node="a")
    assert status(world.asked(x)).reason == "preemption: not eligible due to a terminating pod on the nominated node."
    world.nominated.adopt([x])
    assert status(world.asked(x)).code is Code.UNSCHEDULABLE
    # A terminating pod of the same priority is nobody's victim.
    world.put(pod("p", "a", cpu=4, priority=1, terminating=True))
    assert world.preempts(x) == ("b", ["q"])


def test_a_nominated_node_that_can_never_take_the_pod_is_given_up() -> None:
    world = World([node("a", cpu=1), node("b")], [pod("p", "a", terminating=True), pod("q", "b", cpu=4)])
    assert world.preempts(pod("x", cpu=2, priority=1, nominated_node="a")) == ("b", ["q"])
    assert world.preempts(pod("x", cpu=2, priority=1, nominated_node="gone")) == ("b", ["q"])


# Hints


def test_a_nominated_pod_is_woken_by_pods_that_leave_its_node() -> None:
    world = World([node("a"), node("b")], [])
    x = pod("x")

    def left(name: str) -> ClusterEvent:
        return ClusterEvent(EventKind.POD_LEFT, pod=pod("p", name))

    assert world.preemption.hint(x, left("b")) is Hint.QUEUE
    world.nominated.nominate(x, "a")
    assert world.preemption.hint(x, left("a")) is Hint.QUEUE
    assert world.preemption.hint(x, left("b")) is Hint.SKIP
    assert world.preemption.hint(x, ClusterEvent(EventKind.POD_LEFT)) is Hint.QUEUE
    assert world.preemption.hint(x, ClusterEvent(EventKind.POD_BOUND)) is Hint.SKIP
    assert world.nominated.hint(x, left("b")) is Hint.QUEUE
    assert world.nominated.hint(x, ClusterEvent(EventKind.FORECAST_CHANGED)) is Hint.SKIP


# Odd input


def test_pods_that_request_made_up_things_do_no_harm() -> None:
    strange = replace(pod("s", "a"), requests={f"example.com/r{i}": 1e30 for i in range(40)}, priority=-(2**31))
    world = World([node("a")], [strange, pod("p", "a", cpu=4)])
    assert world.preempts(pod("x", cpu=1, priority=1)) == ("a", ["p"])
    wants = replace(pod("x", priority=2**31 - 1), requests={"cpu": 1.0, "example.com/r3": 1.0})
    assert world.preempts(wants) is None  # no node has any
    for i in range(40):
        world.sitting.units(f"example.com/r{i}")
    assert world.preempts(pod("x", cpu=1, priority=1)) == ("a", ["p"])


def member(
    name: str, on: str, gang: str = "g", *, cpu: float = 2.0, priority: int = 0, started: float = 5e5
) -> PodInfo:
    return pod(name, on, cpu=cpu, priority=priority, started=started, labels={"gang": gang})


def world(pods: Sequence[PodInfo], minimum: int, **more: object) -> World:
    nodes = [node(name) for name in sorted({one.node for one in pods})]
    return World(nodes, pods, gangs=MadeUpGangs({"g": minimum, "h": minimum}), **more)  # type: ignore[arg-type]


def test_a_node_is_not_passed_over_for_a_victim_that_a_lost_gang_makes_needless() -> None:
    # On a first look p would go with g2; as g1 goes with g2, p can stay, and nobody above 2 goes.
    there = [
        pod("p", "a", cpu=2, priority=9),
        member("g1", "a", priority=2, cpu=1),
        member("g2", "a", priority=1, cpu=1),
        pod("q", "b", cpu=4, priority=5),
    ]
    assert world(there, 2).preempts(pod("x", cpu=2, priority=10)) == ("a", ["g1", "g2"])


pods = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from((0.5, 1.0, 2.0)),
        st.sampled_from((0, 3, 7, 20)),
        st.sampled_from(("", "", "g", "h")),
        st.sampled_from((1.0, 2.0, NOW)),
        st.sampled_from(((), (), (80,))),
    ),
    min_size=4,
    max_size=20,
)


@given(pods, st.integers(1, 3), st.sampled_from((1.0, 2.0, 4.0)), st.sampled_from(((), (80,))))
def test_no_gang_is_ever_left_broken_and_nobody_important_goes(
    of_pods: Sequence[tuple[int, float, int, str, float, tuple[int, ...]]],
    minimum: int,
    cpu: float,
    ports: tuple[int, ...],
) -> None:
    there = [
        pod(
            f"p{i}", f"n{on}", cpu=cpu, priority=priority, started=start, labels={"gang": gang} if gang else {}, ports=p
        )
        for i, (on, cpu, priority, gang, start, p) in enumerate(of_pods)
    ]
    gangs = MadeUpGangs({"g": minimum, "h": minimum})
    made = World([node(f"n{i}", cpu=2) for i in range(4)], there, gangs=gangs, options=PreemptionOptions())
    x = pod("x", cpu=cpu, priority=7, ports=ports)
    if made.feasible(x):
        return
    answer = made.asked(x)
    if not isinstance(answer, Nomination):
        return
    uids = {victim.uid for victim in answer.victims}
    assert len(uids) == len(answer.victims) > 0
    assert all(victim.priority < 7 and victim.started != NOW for victim in answer.victims)
    for gang in ("g", "h"):
        members = [one for one in there if one.labels.get("gang") == gang]
        left = [one for one in members if one.uid not in uids]
        assert len(left) == len(members) or not left or len(left) >= minimum
    for uid in uids:
        made.delete(uid)
    assert answer.node in made.feasible(x)
