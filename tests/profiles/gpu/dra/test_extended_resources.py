"""Extended resources of DeviceClasses: requests by container, as upstream makes them, and the lives of their claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from base.backoff import Backoff
from kube.client.api_answer import answered, unanswered
from kube.objects.objects import PodInfo
from kube.session import session_calls
from placement.devices.device_table import DeviceTable
from placement.devices.gpu_devices import GpuDevices
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.node_rule_settings import DeviceOptions
from profiles.gpu.dra.extended_resources import extended_claims
from profiles.gpu.dra.no_resource_claims import NoResourceClaims
from testing.placement.views import node_named, passing, pod_with, verdicts, view_of
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import Manifest, claim, claim_of, class_of, device_class

GPU = "nvidia.com/gpu"
CLASS = {GPU: "gpu"}
MADE = "p-extended-resources-148de"


def container(name: str, restart: str = "", **asked: Any) -> Manifest:
    made: Manifest = {"name": name, "image": "", "resources": {"requests": {"cpu": "1", GPU: asked.get("gpu", 0)}}}
    return made | ({"restartPolicy": restart} if restart else {})


def asking(*containers: Manifest, initial: tuple[Manifest, ...] = (), name: str = "p") -> PodInfo:
    chosen = list(containers or (container("main", gpu=1),))
    return pod_with({"containers": chosen, "initContainers": list(initial)}, name=name)


def offered(world: World, **spec: Any) -> World:
    world.table.classes.put(class_of(device_class(**{"extendedResourceName": GPU} | spec)))
    return world


@pytest.mark.parametrize(
    ("initial", "containers", "requests", "mappings"),
    [
        ([], [1], [("c0", 1)], ["k0=c0"]),
        ([], [1, 2], [("c0", 1), ("c1", 2)], ["k0=c0", "k1=c1"]),
        ([1], [1], [("c1", 1)], ["k1=c1", "i0=c1"]),  # an init container uses what comes later
        ([3], [1], [("c0", 2), ("c1", 1)], ["k1=c1", "i0=c1", "i0=c0"]),
        ([2, 3], [], [("c1", 3)], ["i0=c1", "i1=c1"]),  # the largest serves all
        ([2, 3], [1], [("c1", 2), ("c2", 1)], ["k2=c2", "i0=c2", "i0=c1", "i1=c2", "i1=c1"]),
        ([-1], [1], [("c0", 1), ("c1", 1)], ["s0=c0", "k1=c1"]),  # a sidecar goes on
        ([-1, 2], [1], [("c0", 1), ("c1", 1), ("c2", 1)], ["s0=c0", "k2=c2", "i1=c2", "i1=c1"]),
    ],
)
def test_requests_and_which_container_uses_them(
    initial: list[int], containers: list[int], requests: list[tuple[str, int]], mappings: list[str]
) -> None:
    """Init containers with -1 are sidecars that request 1. Names are shortened: c0 for container-0-request-1."""
    starting = tuple(
        container(f"s{i}", "Always", gpu=1) if one < 0 else container(f"i{i}", gpu=one) for i, one in enumerate(initial)
    )
    running = [container(f"k{len(initial) + i}", gpu=one) for i, one in enumerate(containers)]
    pod = asking(*(running or [container("none")]), initial=starting)
    ((_, made),) = extended_claims(pod, CLASS, view_of([node_named("a")]))
    assert made is not None
    wishes = [request.wishes[0] for request in made.claim.spec.requests]
    assert all(wish.name.endswith("-request-1") and wish.device_class == "gpu" for wish in wishes)

    def short(name: str) -> str:
        return name.replace("container-", "c").removesuffix("-request-1")

    assert [(short(wish.name), wish.count) for wish in wishes] == requests
    assert [f"{who}={short(request)}" for who, kind, request in made.mappings if kind == GPU] == mappings


def test_a_node_with_a_device_plugin_is_counted_by_it() -> None:
    plugin = {"cpu": 4.0, "memory": 2.0**34, "pods": 110.0, GPU: 1.0}
    resources: dict[str, str] = {}
    world = World(claim("other"), nodes="ab")
    world.view = view_of([node_named("a"), node_named("plugin", allocatable=plugin), node_named("bare")])
    fit, blind = NodeResourcesFit(device_class_resources=world.table.class_resources), NoResourceClaims(resources)
    pod = asking()
    assert passing(fit, pod, world.view) == {"plugin"}
    offered(world)
    resources |= world.table.class_resources
    world.table.state = world.view.state
    assert passing(fit, pod, world.view) == {"a", "plugin", "bare"}
    world.plugin._view = world.view
    assert world.fits(pod) == {"a", "plugin"}
    assert passing(blind, pod, world.view) == {"plugin"}
    two = asking(container("main", gpu=2))
    assert passing(fit, two, world.view) == {"a", "bare"} and world.fits(two) == {"a", "plugin"}
    devices = DeviceTable(world.view.state, DeviceOptions())
    assert passing(GpuDevices(devices), pod, world.view) == {"plugin"}
    assert passing(GpuDevices(devices, resources), pod, world.view) == {"a", "plugin", "bare"}


def test_a_claim_is_made_and_recorded_and_gone_when_binding_fails() -> None:
    world, pod = offered(World()), asking(container("main", gpu=2))
    world.server.put({"metadata": {"name": "p", "uid": "p"}})
    assert world.reserve(pod, "a").is_success and world.used() == {"a/0", "a/1"}
    assert world.fits(asking(name="q")) == {"b"}
    assert world.pre_bind(pod, "a").is_success
    made = world.server.objects[MADE]
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made["spec"]["devices"]["requests"] == [
        {
            "name": "container-0-request-1",
            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
        }
    ]
    assert world.server.devices(MADE) == ["a/0", "a/1"] and world.server.users(MADE) == ["p"]
    assert world.server.status("p")["extendedResourceClaimStatus"] == {
        "requestMappings": [{"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-1"}],
        "resourceClaimName": MADE,
    }
    assert world.used() == {"a/0", "a/1"} and not world.table.in_flight
    world.plugin.unreserve(pod, "a")
    world.settle()
    assert MADE not in world.server.objects
    world.table.claims.replace([])
    assert world.used() == set() and world.fits(pod) == {"a", "b"}


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_answer_that_is_lost_makes_no_second_claim(is_lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "_BACKOFF", Backoff(0.0))
    world, pod = offered(World()), asking()
    world.server.put({"metadata": {"name": "p", "uid": "p"}})
    assert world.reserve(pod, "b").is_success
    world.server.after = lambda: unanswered(TimeoutError()) if is_lost else answered(500, b"{}")
    assert world.pre_bind(pod, "b").is_success
    assert sum(one.startswith("POST") for one in world.server.asked) == 2
    assert world.server.users(MADE) == ["p"] and world.used() == {"b/0"}


def test_nothing_is_left_where_the_pod_is_gone() -> None:
    """Its status cannot be written: the claim goes, too."""
    world, pod = offered(World()), asking()
    assert world.reserve(pod, "a").is_success
    assert not world.pre_bind(pod, "a").is_success
    assert MADE in world.server.objects
    world.plugin.unreserve(pod, "a")
    world.settle()
    assert MADE not in world.server.objects and not world.table.in_flight


def test_a_claim_of_an_earlier_attempt_is_deleted_before_the_pod_is_placed() -> None:
    world, pod = offered(World()), asking()
    stale = claim("stale")
    stale["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}],
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    world.put(stale)
    found = verdicts(world.plugin, pod, world.view)
    assert {reason.split(" for ")[0] for one in found.values() for reason in one.reasons} == {"resource claim stale"}
    assert world.fits(asking(name="q")) == {"a", "b"}
    world.plugin.post_filter(pod, world.view, [], world.plugin.filter(pod, world.view))
    world.settle()
    assert "stale" not in world.server.objects
    world.woken.clear()
    world.table.claims.delete(claim_of(stale))
    assert world.woken == ["room"] and world.fits(pod) == {"a", "b"}


def test_a_class_that_comes_wakes_pods_that_request_its_resource() -> None:
    world = World()
    for pod in (asking(), replace(asking(name="sits"), node="a")):
        with world.lock:
            world.table.apply(world.view.state.put_pod(pod))
    offered(world)
    assert world.woken == ["p"]
