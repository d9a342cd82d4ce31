"""Room is kept for nominated pods, from pods that are no more important, for as long as it is of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import PodInfo, PodPhase
from tests.scheduler.preemption.made_up import World, node, pod


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
    world.put(replace(x, node="a", phase=PodPhase.RUNNING))  # it was bound after all
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
    world.put(replace(pod("z"), phase=PodPhase.FAILED))
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
