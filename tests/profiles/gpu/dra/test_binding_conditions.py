"""Devices that drivers make ready before the pod is bound (KEP-5007)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube.objects.objects import PodInfo
from placement.status import Code, Status
from profiles.gpu.dra import claim_writes
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import DRIVER, claim, consumer, device, resource_slice


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_writes, "_LOOK_SECONDS", 0.001)


def a_world(*claims: Any, **more: Any) -> World:
    waiting = {"bindingConditions": ["Attached", "Wired"], "bindingFailureConditions": ["Broken"]} | more
    return World(*(claims or (claim("c"),)), slices=(resource_slice("s-a", device("0") | waiting, allNodes=True),))


def says(world: World, *conditions: str) -> None:
    """The driver writes them as true, and the watch brings that."""
    listed = [{"type": one, "status": "True", "reason": "x", "message": ""} for one in conditions]
    status = world.server.objects["c"]["status"]
    status["devices"] = [{"driver": DRIVER, "pool": "s-a", "device": "0", "conditions": listed}]
    world.server.version += 1
    world.server.objects["c"]["metadata"]["resourceVersion"] = str(world.server.version)
    world.watch("c")


def while_it_waits(world: World, pod: PodInfo, *then: Callable[[], None]) -> Status:
    """What pre_bind says once all of that has happened."""

    async def run() -> Status:
        task = asyncio.create_task(world.plugin.pre_bind(pod, "a"))
        for act in then:
            for _ in range(50):
                await asyncio.sleep(0.002)
                if world.server.status("c").get("allocation") is not None:
                    break
            await asyncio.sleep(0.02)
            assert not task.done()
            act()
        return await asyncio.wait_for(task, 30)

    return asyncio.run(run())


def test_a_pod_is_bound_once_all_conditions_are_true() -> None:
    world = a_world()
    pod = world.reserved("p", "a", "c")
    status = while_it_waits(world, pod, lambda: says(world, "Attached"), lambda: says(world, "Attached", "Wired"))
    assert status.is_success
    (result,) = world.server.status("c")["allocation"]["devices"]["results"]
    assert result["bindingConditions"] == ["Attached", "Wired"] and result["bindingFailureConditions"] == ["Broken"]
    assert "nodeSelector" not in world.server.status("c")["allocation"]


@pytest.mark.parametrize("is_late", [True, False])
def test_a_failure_or_a_late_driver_withdraws_the_allocation(is_late: bool) -> None:
    world = a_world()
    pod = world.reserved("p", "a", "c")

    def late() -> None:
        world.now += 601

    status = while_it_waits(world, pod, late if is_late else lambda: says(world, "Attached", "Broken"))
    assert status.code is Code.ERROR
    assert ("600 s after it was allocated" if is_late else "has the condition Broken") in status.reason
    world.plugin.unreserve(pod, "a")
    world.settle()
    assert world.server.devices("c") == [] and world.server.users("c") == [] and world.used() == set()


def test_a_claim_that_others_allocated_is_waited_for_or_deallocated_when_it_failed() -> None:
    result = {"request": "r", "driver": DRIVER, "pool": "s-a", "device": "0", "bindingConditions": ["Attached"]}
    made = {"devices": {"results": [result]}, "allocationTimestamp": "2023-11-14T22:13:20Z"}
    world = a_world(claim("c", status={"allocation": made, "reservedFor": [consumer("p")]}))
    pod = world.pod("p", "c")
    assert world.fits(pod) == {"a", "b"} and world.reserve(pod, "a").is_success
    assert while_it_waits(world, pod, lambda: says(world, "Attached")).is_success
    world.plugin.unreserve(pod, "a")
    world.settle()
    says(world)
    world.now = 1_700_000_000.0 + 599
    assert world.fits(pod) == {"a", "b"}
    world.now += 2
    assert world.fits(pod) == set()
    world.plugin.post_filter(pod, world.view, (), world.plugin.filter(pod, world.view))
    world.settle()
    assert world.server.devices("c") == [] and world.fits(pod) == {"a", "b"}
