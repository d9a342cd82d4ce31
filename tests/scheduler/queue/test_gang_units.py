from __future__ import annotations

from placement.cluster_events import ClusterEvent, EventKind
from tests.scheduler.queue.queue_world import FIT, SPREAD, World, a_pod, node_added


def _gang(*names: str, gang: str = "ns/g", zone: str = "") -> World:
    world = World()
    world.put(*(a_pod(name, gang=gang, zone=zone) for name in names))
    return world


def test_a_gang_is_popped_whole() -> None:
    world = _gang("a", "b", "c")
    first = world.pop(most=1)
    assert first is not None
    assert (first.key, first.is_gang, len(first.pods)) == ("ns/g", True, 3)


def test_a_gang_has_the_place_of_its_highest_priority_and_of_its_group() -> None:
    world = World(since={"ns/g": 5.0, "ns/h": 6.0})
    world.put(a_pod("single"))
    world.put(a_pod("h1", gang="ns/h"), a_pod("g1", gang="ns/g"), a_pod("g2", gang="ns/g"))
    assert list(world.all_popped()) == [["g1", "g2"], ["h1"], ["single"]]
    world.put(a_pod("s", priority=3), a_pod("i1", gang="ns/i"), a_pod("i2", gang="ns/i", priority=4))
    assert list(world.all_popped()) == [["i1", "i2"], ["s"]]


def test_when_the_member_with_the_priority_goes_its_place_goes() -> None:
    world = World()
    world.put(a_pod("g1", gang="ns/g"), a_pod("g2", gang="ns/g", priority=9), a_pod("s", priority=3))
    world.queue.remove("g2")
    assert list(world.all_popped()) == [["s"], ["g1"]]


def test_a_group_that_appears_gives_its_members_their_place() -> None:
    world = World()
    world.put(a_pod("single"))
    world.now += 1
    world.put(a_pod("g1", gang="ns/g"))
    world.since["ns/g"] = 5.0
    world.queue.wake_units(["ns/g"])
    assert list(world.all_popped()) == [["g1"], ["single"]]


def test_a_gang_backs_off_as_a_whole() -> None:
    world = _gang("a", "b")
    assert world.reject(FIT) == ["a", "b"]
    assert world.parts() == {"a": "unschedulable", "b": "unschedulable"}
    world.put(a_pod("c", gang="ns/g"))
    assert world.parts() == {"a": "backoff", "b": "backoff", "c": "backoff"}
    world.after(1)
    assert world.popped() == ["a", "b", "c"]


def test_a_new_member_makes_a_gang_active_that_waits_for_an_event() -> None:
    world = _gang("a", "b")
    world.reject(FIT)
    world.after(20)
    world.put(a_pod("c", gang="ns/g"))
    assert world.parts() == {"a": "active", "b": "active", "c": "active"}


def test_an_event_that_helps_one_member_wakes_all() -> None:
    world = World()
    world.put(a_pod("a", gang="ns/g", zone="x"), a_pod("b", gang="ns/g", zone="y"))
    world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added("y"))
    assert world.popped() == ["a", "b"]


def test_a_change_of_the_group_wakes_it_and_nobody_else() -> None:
    world = World()
    world.put(a_pod("a", gang="ns/g"), a_pod("b", gang="ns/h"), a_pod("c"))
    for _ in range(3):
        world.reject(FIT)
    world.after(20)
    world.queue.happened(ClusterEvent(EventKind.GROUP_CHANGED, group="ns/g"))
    assert world.parts() == {"a": "active", "b": "unschedulable", "c": "unschedulable"}


def test_the_member_that_completes_a_gang_brings_the_gated_ones_along() -> None:
    world = World(gated={"a": "waits for members: 1 of 2", "b": "waits for members: 1 of 2"})
    world.put(a_pod("a", gang="ns/g"))
    assert world.parts() == {"a": "gated"}
    world.gated.clear()
    world.put(a_pod("b", gang="ns/g"))
    assert world.popped() == ["a", "b"]


def test_a_member_with_a_gate_of_its_own_stays_behind() -> None:
    world = World(gated={"b": "gate"})
    world.put(*(a_pod(name, gang="ns/g") for name in "abc"))
    assert world.popped() == ["a", "c"]
    assert world.parts()["b"] == "gated"


def test_a_gang_that_lost_a_member_is_gated_again() -> None:
    world = _gang("a", "b")
    world.queue.remove("b")
    world.gated["a"] = "waits for members: 1 of 2"
    world.queue.wake_units(["ns/g"])
    assert world.parts() == {"a": "gated"}


def test_a_gang_told_to_wait_when_it_comes_back_goes_on_as_a_whole() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.waits = {"a": 30.0, "b": 30.5}  # not asked at one moment
    world.queue.rejected(first.pods, frozenset({FIT}), "8 of 16 members fit")
    assert world.parts() == {"a": "gated", "b": "gated"}
    world.after(29)
    assert world.parts() == {"a": "gated", "b": "gated"}
    world.after(1)
    assert world.popped() == ["a", "b"]


def test_a_member_that_comes_while_the_others_are_in_flight_brings_them_back() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.put(a_pod("c", gang="ns/g"))
    assert world.parts() == {"a": "in_flight", "b": "in_flight", "c": "active"}
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "backoff", "c": "backoff"}
    world.after(1)
    assert world.popped() == ["a", "b", "c"]


def test_members_beyond_the_minimum_are_tried_alone_while_the_others_are_bound() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.put(a_pod("c", gang="ns/g"))
    assert world.popped() == ["c"]
    for name in "ab":
        world.queue.done(name)
    assert world.parts() == {"c": "in_flight"}


def test_a_binding_that_failed_takes_waiting_members_along() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.put(a_pod("c", gang="ns/g"))
    second = world.pop()
    assert second is not None
    world.queue.rejected(second.pods, frozenset({SPREAD}), "no room for one more")
    assert world.parts() == {"a": "in_flight", "b": "in_flight", "c": "unschedulable"}
    world.queue.done("a")
    world.queue.failed(first.pods[1:])
    assert world.parts() == {"b": "backoff", "c": "backoff"}
    world.after(1)  # one of it was placed: the count of attempts began anew
    assert world.popped() == ["b", "c"]


def test_backoff_of_a_gang_doubles_with_its_attempts_not_with_its_members() -> None:
    world = _gang("a", "b", "c")
    for seconds in (1, 2, 4, 8, 10, 10):
        first = world.pop()
        assert first is not None
        world.queue.failed(first.pods)
        world.after(seconds - 0.1)
        assert set(world.parts().values()) == {"backoff"}
        world.after(0.1)
        assert set(world.parts().values()) == {"active"}


def test_a_gang_that_nothing_woke_is_tried_again_after_five_minutes() -> None:
    world = _gang("a", "b")
    world.reject(FIT)
    world.after(300)
    assert world.popped() == ["a", "b"]


def test_a_member_that_leaves_its_group_is_a_pod_like_any_other() -> None:
    world = _gang("a", "b")
    world.put(a_pod("b", unit="u"))
    assert list(world.all_popped()) == [["a"], ["b"]]
    world.queue.done("a")
    first = world.parts()
    assert first == {"b": "in_flight"}


def test_a_pod_that_joins_a_group_in_flight_comes_back_into_it() -> None:
    world = _gang("a")
    world.reject(FIT)
    world.put(a_pod("b", unit="u"))
    first = world.pop()
    assert first is not None
    world.put(a_pod("b", gang="ns/g"))
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "backoff"}
    world.after(2)
    assert world.popped() == ["a", "b"]


def test_a_member_that_came_meanwhile_counts_also_where_it_found_no_node() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.put(a_pod("c", gang="ns/g"))
    assert world.reject(FIT) == ["c"]
    assert world.parts()["c"] == "unschedulable"
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "backoff", "c": "backoff"}


def test_a_gang_that_is_rejected_takes_along_whoever_is_active_of_it() -> None:
    world = _gang("a")
    world.waits = {"b": 5.0}
    world.put(a_pod("b", gang="ns/g"))
    first = world.pop()
    assert first is not None
    world.after(5)
    assert world.parts() == {"a": "in_flight", "b": "active"}
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff", "b": "backoff"}


def test_a_member_that_knows_of_the_group_tells_the_others() -> None:
    world = World()
    world.put(a_pod("single"))
    world.now += 1
    world.put(a_pod("g1", gang="ns/g"))
    world.since["ns/g"] = 5.0
    world.put(a_pod("g2", gang="ns/g"))
    assert list(world.all_popped()) == [["g1", "g2"], ["single"]]


def test_members_that_only_pause_go_on_with_the_first_one_that_may() -> None:
    for knows_first in ("a", "c"):
        world = World(waits={"a": 30.0, "b": 60.0, "c": 90.0}, gated={"d": "gate"})
        world.put(*(a_pod(name, gang="ns/g") for name in "abcd"))
        assert set(world.parts().values()) == {"gated"}
        del world.waits[knows_first]
        world.queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=a_pod(knows_first, gang="ns/g")))
        assert world.popped() == ["a", "b", "c"]
        assert world.parts()["d"] == "gated"


def test_members_that_only_pause_go_on_with_a_new_one_that_may() -> None:
    world = World(waits={"a": 30.0, "b": 60.0})
    world.put(*(a_pod(name, gang="ns/g") for name in "abc"))
    assert world.popped() == ["a", "b", "c"]


def test_a_member_told_to_pause_when_it_comes_back_goes_on_with_the_others() -> None:
    world = _gang("a", "b")
    first = world.pop()
    assert first is not None
    world.waits = {"a": 30.0}
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "unschedulable", "b": "unschedulable"}
