"""The directory and the queue together: when a gang is popped, and who goes first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kube.objects.pod_accounting import waits
from kube.tables.changes import Change, PodChange
from scheduler.gangs.options import GangOptions
from scheduler.gangs.plugin import Gang
from scheduler.queue.options import QueueOptions
from scheduler.queue.queued import Popped
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.sorting import PrioritySort
from tests.scheduler.gangs.made_up import NOW, TRAIN, Scene, group, member

BACKOFF = 11.0  # seconds: longer than any


class World(Scene):
    """Pods that wait are put into the queue after the directory has seen them."""

    def __init__(self) -> None:
        super().__init__(options=GangOptions(timeout=60, pause=30))
        plugin = Gang(self.directory)
        self.queue = SchedulingQueue(
            sort=PrioritySort(),
            gate=plugin.pre_enqueue,
            hints=lambda pod: {plugin.name: plugin},
            units=self.directory,
            options=QueueOptions(),
            clock=lambda: self.now,
        )
        self.directory.listeners.append(lambda key: self.queue.wake_units([key]))
        self.cluster.listeners.append(self.follow)

    def follow(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, PodChange):
                pod = self.cluster.state.pods.get(change.pod.uid)
                if pod is not None and waits(pod):
                    self.queue.put(pod)
                else:
                    self.queue.remove(change.pod.uid)

    def pop(self) -> Popped | None:
        return self.queue.pop(most=100, wait_seconds=0)

    def popped(self) -> tuple[str, list[str]] | None:
        """Key of the unit and its pods."""
        popped = self.pop()
        return None if popped is None else (popped.key, sorted(one.pod.uid for one in popped.pods))

    def fail(self) -> None:
        """An attempt that ends as those of the cycle do."""
        popped = self.pop()
        assert popped is not None and popped.is_gang
        self.directory.attempt_failed(popped.key, "1 of 2 members")
        self.queue.rejected(popped.pods, frozenset({"NodeResourcesFit"}), "0/1 nodes are available")

    def messages(self) -> set[str]:
        return {one.message for one in self.queue.waiting()}


@pytest.fixture
def world() -> World:
    return World()


def test_a_gang_is_popped_once_it_is_complete_and_whole(world: World) -> None:
    world.put(member("a"), member("b"))
    world.directory.put_group(group(3))
    assert world.popped() is None and world.queue.lengths()["gated"] == 2
    world.directory.tick()
    assert world.messages() == {"waits for members: 2 of 3 pods of PodGroup train exist"}
    world.put(member("c"))
    assert world.popped() == (TRAIN, ["a", "b", "c"])


def test_of_gangs_the_one_that_was_created_first_comes_first(world: World) -> None:
    world.directory.replace_groups([group(1, name="late", created=NOW), group(1, name="early", created=NOW - 9)])
    world.put(member("a", of="late"), member("b", of="early"))
    assert [world.popped(), world.popped()] == [("ml/early", ["b"]), ("ml/late", ["a"])]


def test_a_group_that_vanishes_or_is_mistaken_keeps_its_members_out(world: World) -> None:
    world.directory.put_group(group(1))
    world.put(member("a"))
    world.directory.delete_group(group(1))
    assert world.popped() is None and world.messages() == {"PodGroup ml/train does not exist"}
    world.directory.put_group(group(1, problem="no"))
    assert world.popped() is None and world.messages() == {"PodGroup train cannot be used: no"}
    world.directory.put_group(group(1))
    assert world.popped() == (TRAIN, ["a"])


def test_past_its_timeout_a_gang_pauses_and_is_tried_again(world: World) -> None:
    world.directory.put_group(group(2))
    world.put(member("a"), member("b"))
    world.fail()
    assert world.queue.lengths()["unschedulable"] == 2, "what its owner is told wakes nobody"
    world.now += 60
    world.queue.wake_units([TRAIN])
    world.fail()
    assert world.queue.lengths()["gated"] == 2
    assert all("others go first" in message for message in world.messages())
    world.directory.put_group(group(1, name="small"))
    world.put(member("s", of="small"))
    assert world.popped() == ("ml/small", ["s"])
    world.now += 29
    world.directory.tick()
    assert world.popped() is None
    world.now += BACKOFF
    world.directory.tick()
    assert world.popped() == (TRAIN, ["a", "b"])


def test_a_gang_that_no_event_wakes_pauses_at_its_timeout_and_is_tried_after_it(world: World) -> None:
    world.directory.put_group(group(2))
    world.put(member("a"), member("b"))
    world.fail()
    for _ in range(60):
        assert world.queue.lengths()["unschedulable"] == 2
        world.now += 1
        world.directory.tick()
    assert world.queue.lengths()["gated"] == 2
    assert all("could not be placed within 60 s, others go first" in message for message in world.messages())
    world.now += 30
    world.directory.tick()
    assert world.popped() == (TRAIN, ["a", "b"])


def test_a_member_that_comes_later_is_tried_alone_once_the_others_sit(world: World) -> None:
    world.directory.put_group(group(2))
    world.put(member("a"), member("b"))
    popped = world.pop()
    assert popped is not None
    world.assume(*(one.pod for one in popped.pods))
    world.put(member("c"))
    assert world.popped() == (TRAIN, ["c"])
    assert world.directory.shortfall(TRAIN, []) == ""


def test_a_member_that_is_lost_makes_the_gang_wait_for_another(world: World) -> None:
    world.directory.put_group(group(2))
    world.put(member("a"), member("b"))
    world.cluster.delete_pod("a")
    assert world.popped() is None and world.queue.lengths()["gated"] == 1
    world.put(member("c"))
    assert world.popped() == (TRAIN, ["b", "c"])
