"""Devices are kept for whom room was made: until it sits there, from nobody who is more important, and no more of them
than it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import EnqueueExtensions, Nomination
from tests.profiles.gpu.preempting import GpuWorld, gpu_node, share, whole
from tests.scheduler.preemption.made_up import pod


def nominated(world: GpuWorld, x: PodInfo) -> Nomination:
    """Room is made for x, as the executor does it; whoever goes is on the way out."""
    world.put(x)
    answer = world.asked(x)
    assert isinstance(answer, Nomination)
    world.nominated.nominate(x, answer.node, {victim.uid for victim in answer.victims})
    for victim in answer.victims:
        world.put(replace(victim, terminating=True))
    return answer


def gone(world: GpuWorld, answer: Nomination) -> None:
    for victim in answer.victims:
        world.delete(victim.uid)


def test_who_is_made_anew_does_not_take_the_place_again() -> None:
    there = [share(f"low{i}", 500, "a", 0, priority=1) for i in range(2)]
    world = GpuWorld([gpu_node("a", 1)], there)
    x = share("x", 800, priority=10)
    answer = nominated(world, x)
    assert len(answer.victims) == 2
    gone(world, answer)
    again = [share(f"again{i}", 500, priority=1) for i in range(2)]
    assert all(world.feasible(one) == set() for one in again)
    assert world.feasible(x) == {"a"}
    world.put(share("x", 800, "a", 0, priority=10))
    assert not len(world.nominated)
    assert world.feasible(share("little", 200, priority=1)) == {"a"}, "what it leaves"


def test_in_the_framework() -> None:
    world = GpuWorld([gpu_node("a", 1)], [share("low", 1000, "a", 0, priority=1)])
    hints: EnqueueExtensions = world.keeps
    assert hints.hint(share("y", 1), ClusterEvent(EventKind.POD_LEFT)) is Hint.QUEUE
    assert hints.hint(share("y", 1), ClusterEvent(EventKind.STORAGE_CHANGED)) is Hint.SKIP
    y, without = share("y", 1, priority=1), pod("without", priority=1)
    assert world.keeps.ignores_like_pods(y, world.view)
    nominated(world, share("x", 1000, priority=5))
    assert not world.keeps.ignores_like_pods(y, world.view) and world.keeps.ignores_like_pods(without, world.view)
    assert world.keeps.ignores_like_pods(share("higher", 1, priority=6), world.view)


_Sitting = tuple[int, int, int]  # device, thousandths, priority

sitting = st.lists(st.tuples(st.integers(0, 2), st.sampled_from((200, 500, 1000)), st.integers(0, 9)), max_size=7)
wanted = st.sampled_from((0, 200, 500, 900))  # 0: a whole one


def asks(name: str, milli: int, priority: int) -> PodInfo:
    return share(name, milli, priority=priority) if milli else whole(name, priority=priority)


@given(sitting, wanted, wanted, st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_whoever_is_let_in_leaves_room(of_pods: Sequence[_Sitting], for_x: int, for_y: int, gpus: int) -> None:
    """Wherever a less important pod is let in, on whichever device it is put: whom room is made for fits afterwards."""
    left, there = [1000] * gpus, []
    for number, (device, milli, priority) in enumerate(of_pods):
        device %= gpus
        if left[device] >= milli:
            left[device] -= milli
            there.append(share(f"p{number}", milli, "a", device, priority=priority))
    world = GpuWorld([gpu_node("a", gpus)], there)
    x, y = asks("x", for_x, 5), asks("y", for_y, 3)
    if world.feasible(x) or not isinstance(world.asked(x), Nomination):
        return
    answer = nominated(world, x)
    while_they_go = world.feasible(y) == {"a"}
    devices = [i for i, free in enumerate(world.free()[0][:gpus]) if free >= (for_y or 1000)]
    gone(world, answer)
    for device in devices if while_they_go else ():
        world.put(replace(share("y", for_y or 1000, "a", device), priority=3))
        assert world.feasible(x) == {"a"}, device
        world.delete("y")
    assert world.feasible(x) == {"a"}
