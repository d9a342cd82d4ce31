from __future__ import annotations

from tests.scheduler.queue.queue_world import FIT, World, a_pod


def _gang(*names: str, gang: str = "ns/g", zone: str = "") -> World:
    world = World()
    world.put(*(a_pod(name, gang=gang, zone=zone) for name in names))
    return world


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


def test_a_member_that_knows_of_the_group_tells_the_others() -> None:
    world = World()
    world.put(a_pod("single"))
    world.now += 1
    world.put(a_pod("g1", gang="ns/g"))
    world.since["ns/g"] = 5.0
    world.put(a_pod("g2", gang="ns/g"))
    assert list(world.all_popped()) == [["g1", "g2"], ["single"]]
