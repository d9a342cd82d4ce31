from __future__ import annotations

from dataclasses import replace

from placement.plugins import SortedUnit
from scheduler.queue.options import BackoffOptions, QueueOptions
from tests.placement.small_cluster import pod_of
from tests.scheduler.queue.queue_world import BEGIN, FIT, World, a_pod


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


def test_without_backoff_a_pod_that_failed_is_active_at_once() -> None:
    world = World(QueueOptions(backoff=BackoffOptions(initial=0, longest=0)))
    world.put(a_pod("a"))
    first = world.pop()
    assert first is not None
    world.queue.failed(first.pods)
    assert world.parts() == {"a": "active"}


def test_a_pod_whose_priority_changes_changes_its_place() -> None:
    world = World()
    world.put(a_pod("a", unit="u"), a_pod("b", unit="u"))
    world.put(a_pod("b", unit="u", priority=9))
    assert list(world.all_popped()) == [["b"], ["a"]]


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
