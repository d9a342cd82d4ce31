from __future__ import annotations

from dataclasses import replace

import pytest

from placement.cluster_events import ClusterEvent, EventKind
from tests.scheduler.queue.queue_world import FIT, World, a_pod, node_added


def test_a_gated_pod_is_not_tried_and_asked_again_when_it_changes() -> None:
    world = World(gated={"a": "waits for its gate"})
    pod = a_pod("a")
    world.put(pod)
    assert world.popped() == []
    (waiting,) = world.queue.waiting()
    assert (waiting.part, waiting.attempts, waiting.rejected_by) == ("gated", 0, frozenset({"Gate"}))
    assert waiting.message == "waits for its gate"
    for event in (node_added(), ClusterEvent(EventKind.POD_LEFT)):
        world.queue.happened(event)
    world.after(1_000)
    assert world.parts() == {"a": "gated"}
    world.gated.clear()
    world.put(replace(pod, gates=("other",)))
    (waiting,) = world.queue.waiting()
    assert (waiting.part, waiting.message, waiting.rejected_by) == ("active", "", frozenset())


def test_a_gate_that_asks_to_wait_lets_the_pod_through_after_that() -> None:
    world = World(waits={"a": 30.0, "b": 30.0})
    world.put(a_pod("a", unit="u"), a_pod("b", unit="v"))
    world.after(20)
    world.queue.wake_units(["v"])  # asked again, it waits anew
    world.after(10)
    assert world.parts() == {"a": "active", "b": "gated"}
    world.after(20)
    assert world.parts() == {"a": "active", "b": "active"}


def test_a_timeout_event_wakes_everybody_and_asks_all_gates() -> None:
    world = World(gated={"a": "no", "b": "no"})
    world.put(a_pod("a"), a_pod("b"), a_pod("c", zone="x"))
    world.reject(FIT)
    world.after(20)
    del world.gated["a"]
    world.queue.happened(ClusterEvent(EventKind.TIMEOUT))
    assert world.parts() == {"a": "active", "b": "gated", "c": "active"}


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
