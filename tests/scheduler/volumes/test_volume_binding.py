"""The plugin: what is reserved is reckoned with, written, waited for, and given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cluster.tables.changes import PodChange
from kube.objects.objects import PodInfo
from placement.filters.volume_binding import VolumeBinding as Filter
from placement.status import Code, Status
from scheduler.binding.outcome import outcome_of_binding
from tests.scheduler.volumes.volume_world import SELECTED, World, local, merged, waiting


def binds(world: World, pod: PodInfo, node: str, then: Callable[[], None] = lambda: None) -> Status:
    """What PreBind says; `then` happens once it waits."""

    async def run() -> Status:
        task = asyncio.create_task(world.plugin.pre_bind(pod, node))
        while not len(world.plugin.waits) and not task.done():
            await asyncio.sleep(0.001)
        then()
        return await asyncio.wait_for(task, 60)

    status = asyncio.run(run())
    assert not len(world.plugin.waits) and not world.plugin.waits._by_key
    return status


def is_as_before(world: World) -> bool:
    """Nothing is assumed."""
    return not world.cluster.index.storage._assumed


def reserved(world: World, name: str, node: str, *claims: str) -> PodInfo:
    pod = world.pod(name, *claims)
    assert world.plugin.reserve(pod, node).is_success
    return pod


def test_a_volume_that_is_reserved_is_taken() -> None:
    world = World(waiting("one"), waiting("two"), local("on-a", "a"), local("on-b", "b"))
    first = reserved(world, "p", "a", "one")
    assert world.plugin.concerns(first) and world.kept == {"uid-p": 1660.0}
    second = world.pod("q", "two")
    assert world.cluster.passing(Filter(), second) == {"b"}
    assert world.plugin.reserve(second, "a").code is Code.UNSCHEDULABLE
    world.plugin.unreserve(second, "a")  # as the cycle does with all plugins
    assert world.cluster.passing(Filter(), second) == {"b"}
    # Another pod with the same claim has to go where the volume is.
    assert world.cluster.passing(Filter(), world.pod("r", "one")) == {"a"}
    for _ in range(2):
        world.plugin.unreserve(first, "a")
    assert not world.plugin.concerns(first) and is_as_before(world)
    assert world.cluster.passing(Filter(), second) == {"a", "b"}
    assert world.server.asked == []


def test_a_claim_that_is_reserved_is_for_that_node() -> None:
    world = World(waiting("data", "made"))
    pod = reserved(world, "p", "a", "data")
    assert world.cluster.passing(Filter(), world.pod("q", "data")) == {"a"}
    world.plugin.unreserve(pod, "b")  # not where it is
    assert world.claim("data").selected_node == "a"
    world.plugin.unreserve(pod, "a")
    assert world.claim("data").selected_node is None and is_as_before(world)


def test_provisioned() -> None:
    world = World(waiting("data", "made"))
    pod = reserved(world, "p", "a", "data")

    def provisioner() -> None:
        assert world.server.objects["data"]["metadata"]["annotations"] == {SELECTED: "a"}
        world.watch("data")  # the watch brings what was written
        made = local("made-1", "a")
        made["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": "uid-data"}
        world.put(made)
        assert len(world.plugin.waits) == 1
        world.bind("data", "made-1")

    assert binds(world, pod, "a", provisioner).is_success
    assert not world.plugin.concerns(pod) and is_as_before(world)
    world.plugin.unreserve(pod, "a")  # a failure afterwards
    assert world.claim("data").is_bound


def test_an_existing_volume() -> None:
    world = World(waiting("data"), local("on-a", "a"))
    pod = reserved(world, "p", "a", "data")
    assert binds(world, pod, "a", lambda: world.bind("data", "on-a")).is_success
    assert world.server.objects["on-a"]["spec"]["claimRef"]["uid"] == "uid-data"
    assert world.server.asked == ["PATCH /api/v1/persistentvolumes/on-a"]
    assert is_as_before(world)


def test_what_the_watch_brings_from_before_our_writing_says_nothing() -> None:
    world = World(waiting("data", "made"))
    pod = reserved(world, "p", "a", "data")

    def late() -> None:
        old = merged(world.server.objects["data"], {"metadata": {"annotations": None, "resourceVersion": "11"}})
        with world.lock:
            world.cluster.put(old)
        assert len(world.plugin.waits) == 1
        world.watch("data", metadata={"annotations": None})

    status = binds(world, pod, "a", late)
    assert status.reason == "binding volumes: provisioning failed for PVC data"


def test_where_provisioning_failed_other_nodes_come_first_for_a_while() -> None:
    world = World(waiting("data", "made"))
    pod = reserved(world, "p", "a", "data")
    status = binds(world, pod, "a", lambda: world.watch("data", metadata={"annotations": None}))
    assert status.code is Code.ERROR and status.plugin == "VolumeBinding"
    world.plugin.unreserve(pod, "a")
    assert is_as_before(world)
    assert world.cluster.passing(Filter(), pod) == {"b"}
    assert world.cluster.passing(Filter(), world.pod("q")) == {"a", "b"}
    assert world.plugin.reserve(pod, "b").is_success
    binds(world, pod, "b", lambda: world.watch("data", metadata={"annotations": None}))
    world.plugin.unreserve(pod, "b")
    assert world.cluster.passing(Filter(), pod) == {"a", "b"}  # all have failed: any may be tried
    world.now += 100
    assert world.plugin.reserve(pod, "b").is_success
    binds(world, pod, "b", lambda: world.watch("data", metadata={"annotations": None}))
    world.now += 150  # the failure on a is forgotten
    assert world.cluster.passing(Filter(), pod) == {"a"}
    world.now += 100
    assert world.cluster.passing(Filter(), pod) == {"a", "b"}


def _drop_pod(world: World) -> None:
    world.cluster.state.delete_pod("uid-p")
    world.plugin.waits.apply([PodChange(world.first, None, None)])


def _drop_node(world: World) -> None:
    world.plugin.waits.apply(world.cluster.state.delete_node("a"))


def _another_claim(world: World) -> None:
    world.watch("data", metadata={"uid": "another"})


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (_drop_node, "node a is gone"),
        (lambda world: world.cluster.delete(world.server.objects["data"]), "persistentvolumeclaim data is gone"),
        (_another_claim, "persistentvolumeclaim data is gone"),
        (lambda world: world.cluster.delete(world.server.objects["on-a"]), "persistentvolume on-a is gone"),
        (lambda world: world.watch("on-a", spec={"claimRef": None}), "ClaimRef got reset for pv on-a"),
        (
            lambda world: world.watch("on-a", spec={"claimRef": {"uid": "another"}}),
            "persistentvolume on-a is another claim's",
        ),
        (lambda world: world.bind("data", "on-b"), "persistentvolume on-b cannot be reached from the node"),
    ],
)
def test_what_ends_it(happens: Callable[[World], None], reason: str) -> None:
    world = World(waiting("data"), local("on-a", "a"))
    pod = reserved(world, "p", "a", "data")
    world.put(local("on-b", "b"))
    status = binds(world, pod, "a", lambda: happens(world))
    assert (status.code, status.reason) == (Code.ERROR, f"binding volumes: {reason}")
    assert world.plugin.concerns(pod)
    world.plugin.unreserve(pod, "a")
    assert is_as_before(world) and not world.plugin.concerns(pod)


def test_a_pod_that_is_gone() -> None:
    world = World(waiting("data"), local("on-a", "a"))
    pod = world.first = reserved(world, "p", "a", "data")
    status = binds(world, pod, "a", lambda: _drop_pod(world))
    assert status.reason == "the pod does not exist any more" and outcome_of_binding(status).is_gone
    world.plugin.unreserve(pod, "a")
    assert is_as_before(world)


def test_it_does_not_wait_for_ever() -> None:
    world = World(waiting("data", "made"), seconds=0.05)
    pod = reserved(world, "p", "a", "data")
    status = asyncio.run(world.plugin.pre_bind(pod, "a"))
    assert status.reason == "binding volumes: they were not bound in 0.05 s"
    assert not len(world.plugin.waits)


def test_who_writes_first_wins() -> None:
    world = World(waiting("data", "made"))
    pod = reserved(world, "p", "a", "data")
    world.server.put(merged(world.server.objects["data"], {"metadata": {"resourceVersion": "12"}}))
    assert "409" in binds(world, pod, "a").reason
    assert world.claim("data").selected_node == "a"  # until unreserved
    world.plugin.unreserve(pod, "a")
    assert world.claim("data").selected_node is None
