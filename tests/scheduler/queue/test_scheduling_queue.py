from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from scheduler.loop_settings import QueueOptions
from scheduler.queue.lazy_heap import LazyHeap
from tests.scheduler.queue.queue_world import BEGIN, FIT, World, a_pod, node_added


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


def test_a_gate_that_raises_keeps_the_pod_out_until_it_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.waits = None  # type: ignore[assignment]
    world.put(a_pod("a", unit="u"), a_pod("b"))
    assert world.parts() == {"a": "gated", "b": "gated"}
    assert "TypeError" in world.queue.waiting()[0].message
    assert len(caplog.records) == 1
    world.waits = {}
    world.queue.wake_units(["u"])
    assert world.parts() == {"a": "active", "b": "gated"}


def test_a_plugin_that_raises_wakes_pods_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, event: ClusterEvent) -> bool:
        raise KeyError("zone")

    world = World()
    world.fit.says = broken
    for name in ("a", "b"):
        world.put(a_pod(name))
        world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added())
    assert world.parts() == {"a": "active", "b": "active"}
    assert len(caplog.records) == 1


def test_like_pods_of_a_unit_share_one_question() -> None:
    world = World()
    world.put(*(a_pod(f"x{i}", unit="u", zone="x") for i in range(50)))
    world.put(*(a_pod(f"y{i}", unit="u", zone="y") for i in range(50)))
    world.reject(FIT)
    world.after(20)
    world.queue.happened(node_added("y"))
    assert world.fit.asked == 2
    assert world.queue.lengths() == {"active": 50, "backoff": 0, "unschedulable": 50, "gated": 0}
    assert all(uid.startswith("y") for uid in world.popped())
    world.queue.happened(ClusterEvent(EventKind.POD_LEFT))
    assert world.fit.asked == 2  # it does not listen to that
    for uid in [f"x{i}" for i in range(50)]:
        world.queue.remove(uid)
    world.queue.happened(node_added("x"))
    assert world.fit.asked == 2  # nobody is left to ask about


def test_defaults_are_those_of_kube_scheduler() -> None:
    options = QueueOptions()
    assert (options.backoff_initial, options.backoff_longest, options.unschedulable_flush) == (1.0, 10.0, 300.0)


@given(st.lists(st.tuples(st.sampled_from(["push", "discard", "pop"]), st.integers(0, 20))))
def test_it_does_what_a_sorted_list_does(steps: list[tuple[str, int]]) -> None:
    heap: LazyHeap[str] = LazyHeap()
    model: dict[int, str] = {}
    for step, key in steps:
        if step == "push" and key not in model:
            model[key] = str(key)
            heap.push(key, str(key))
        elif step == "discard":
            model.pop(key, None)
            heap.discard(key)
        elif step == "pop":
            expected = [model.pop(first) for first in sorted(model)[: key % 4]]
            assert heap.pop(key % 4) == expected
        assert len(heap) == len(model)
        assert sorted(heap) == sorted(model.values())
        assert heap.smallest(key) == [model[first] for first in sorted(model)[:key]]
        assert heap.first() == (min(model.items()) if model else None)
        assert (key in heap) == (key in model)
