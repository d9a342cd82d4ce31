from __future__ import annotations

from dataclasses import replace

from placement.plugins import SortedUnit
from scheduler.queue.options import BackoffOptions, QueueOptions
from tests.placement.small_cluster import pod_of
from tests.scheduler.queue.queue_world import BEGIN, FIT, World, a_pod, node_added


def test_higher_priority_goes_first_then_who_waits_longer() -> None:
    world = World()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        world.put(a_pod(name, priority=priority))
        world.now += 1
    assert list(world.all_popped()) == [["b"], ["d"], ["a"], ["c"]]


def test_another_order_can_be_plugged_in() -> None:
    class LastFirst:
        def key(self, unit: SortedUnit) -> tuple[float, ...]:
            return (-unit.since,)

    world = World(sort=LastFirst())
    for name in "abc":
        world.put(a_pod(name, priority=ord(name)))
        world.now += 1
    assert list(world.all_popped()) == [["c"], ["b"], ["a"]]


def test_pods_of_a_controller_are_popped_together_in_the_order_in_which_they_arrived() -> None:
    world = World()
    for name in ("a1", "b1", "a2", "b2", "a3"):
        world.put(a_pod(name, unit=name[0]))
        world.now += 1
    first = world.pop(2)
    assert first is not None
    assert (first.key, first.is_gang, [queued.pod.uid for queued in first.pods]) == ("a", False, ["a1", "a2"])
    assert world.queue.lengths() == {"active": 3, "backoff": 0, "unschedulable": 0, "gated": 0}
    assert world.queue.in_flight == 2
    # What is left of it has the place of its own oldest pod.
    assert list(world.all_popped()) == [["b1", "b2"], ["a3"]]


def test_no_pod_of_low_priority_rides_along() -> None:
    world = World()
    world.put(a_pod("low", unit="a"), a_pod("middle", unit="b", priority=3), a_pod("high", unit="a", priority=5))
    assert list(world.all_popped()) == [["high"], ["middle"], ["low"]]


def test_a_pod_that_comes_back_is_ahead_of_those_that_came_after_it() -> None:
    world = World()
    world.put(a_pod("a1", unit="a"))
    world.reject(FIT)
    world.now += 5
    world.put(a_pod("b1", unit="b"))
    world.now += 5
    world.put(a_pod("a2", unit="a"))
    world.queue.happened(node_added())
    assert list(world.all_popped()) == [["a1", "a2"], ["b1"]]


def test_backoff_doubles_with_every_attempt_up_to_the_longest() -> None:
    world = World()
    world.put(a_pod("a"))
    waited = []
    for _ in range(6):
        first = world.pop()
        assert first is not None
        world.queue.failed(first.pods)
        begin = world.now
        while world.parts() == {"a": "backoff"}:
            world.after(0.5)
        waited.append(world.now - begin)
    assert waited == [1, 2, 4, 8, 10, 10]


def test_pop_sees_by_itself_that_a_backoff_is_over() -> None:
    world = World()
    world.put(a_pod("a"))
    first = world.pop()
    assert first is not None
    world.queue.failed(first.pods)
    assert world.popped() == []
    world.now += 1
    assert world.popped() == ["a"]


def test_without_backoff_a_pod_that_failed_is_active_at_once() -> None:
    world = World(QueueOptions(backoff=BackoffOptions(initial=0, longest=0)))
    world.put(a_pod("a"))
    first = world.pop()
    assert first is not None
    world.queue.failed(first.pods)
    assert world.parts() == {"a": "active"}


def test_a_pod_that_nothing_woke_is_tried_again_after_five_minutes() -> None:
    world = World()
    world.put(a_pod("a"))
    world.reject(FIT)
    world.after(299.9)
    assert world.parts() == {"a": "unschedulable"}
    world.after(0.1)
    assert world.parts() == {"a": "active"}


def test_a_clock_set_back_makes_nobody_wait_longer() -> None:
    world = World()
    world.put(a_pod("a"), a_pod("b"))
    world.reject(FIT)
    first = world.pop()
    assert first is not None
    world.queue.failed(first.pods)
    world.now -= 5_000
    world.after(0)
    assert world.parts() == {"a": "unschedulable", "b": "backoff"}
    world.after(1)
    assert world.parts() == {"a": "unschedulable", "b": "active"}
    world.after(299)
    assert world.parts() == {"a": "active", "b": "active"}


def test_a_pod_whose_priority_changes_changes_its_place() -> None:
    world = World()
    world.put(a_pod("a", unit="u"), a_pod("b", unit="u"))
    world.put(a_pod("b", unit="u", priority=9))
    assert list(world.all_popped()) == [["b"], ["a"]]


def test_a_pod_that_changed_in_flight_is_tried_again_as_it_is_now() -> None:
    world = World()
    world.put(a_pod("a", zone="x"))
    first = world.pop()
    assert first is not None
    world.put(a_pod("a", zone="y"))
    assert world.popped() == []
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "backoff"}
    world.after(1)
    again = world.pop()
    assert again is not None
    assert again.pods[0].pod.labels["zone"] == "y"
    assert again.pods[0] is first.pods[0] and again.pods[0].attempts == 2
    world.queue.rejected(again.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "unschedulable"}  # nothing changed since


def test_a_pod_that_is_gone_or_bound_comes_back_from_nowhere() -> None:
    world = World()
    world.put(*(a_pod(name, unit="u") for name in "abc"))
    first = world.pop()
    assert first is not None
    world.queue.remove("a")
    world.queue.done("b")
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    world.queue.rejected(first.pods, frozenset(), "told twice")
    world.queue.failed(first.pods)
    assert world.parts() == {"c": "unschedulable"}
    for unknown in ("a", "b", "nobody"):
        world.queue.remove(unknown)
        world.queue.done(unknown)
    world.queue.remove("c")
    assert world.queue.waiting() == []
    assert world.queue.in_flight == 0
    assert world.queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


def test_an_old_attempt_says_nothing_about_a_pod_that_came_anew() -> None:
    world = World()
    world.put(a_pod("a"))
    first = world.pop()
    assert first is not None
    world.queue.remove("a")
    world.put(a_pod("a"))
    world.queue.rejected(first.pods, frozenset({FIT}), "no room")
    assert world.parts() == {"a": "active"}


def test_what_is_told_of_waiting_pods() -> None:
    world = World()
    world.put(a_pod("a", unit="u"))
    world.now += 7
    world.reject(FIT, message="0/3 nodes are available: 3 Insufficient cpu.")
    (waiting,) = world.queue.waiting()
    assert (waiting.uid, waiting.unit, waiting.part.value, waiting.attempts) == ("a", "u", "unschedulable", 1)
    assert (waiting.arrived, waiting.since) == (BEGIN, BEGIN + 7)
    assert waiting.rejected_by == {FIT}
    assert waiting.message == "0/3 nodes are available: 3 Insufficient cpu."
    assert world.queue.incoming() == {("PodAdd", "active"): 1, ("ScheduleAttemptFailure", "unschedulable"): 1}
    world.now -= 3_600  # a clock set back changes what it shows, not how long it was
    (waiting,) = world.queue.waiting()
    assert waiting.since == BEGIN + 7 - 3_600


def test_a_closed_queue_gives_nothing_more() -> None:
    world = World()
    world.put(a_pod("a"))
    world.queue.close()
    assert world.pop() is None
    assert world.queue.pop(most=1, wait_seconds=1_000) is None


def test_whatever_a_pod_says_it_can_be_queued() -> None:
    world = World()
    odd = replace(pod_of("odd", {"": "", "zone": "\0"}), requests={"": float("inf")}, priority=-(2**31))
    world.put(odd, replace(odd, uid="other", priority=2**31 - 1))
    assert world.reject(FIT) == ["other"]
    assert world.reject(FIT) == ["default/odd"]
