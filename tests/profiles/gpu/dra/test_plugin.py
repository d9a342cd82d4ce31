"""The plugin: what is reserved is used, written, and given back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from base.backoff import Backoff
from kube.client.api_answer import ApiAnswer, answered, unanswered
from kube.session import session_calls
from placement.status import Code, Status
from profiles.gpu.dra.dra_metrics import DraCollector
from profiles.gpu.dra.dra_objects import FINALIZER
from profiles.gpu.dra.no_resource_claims import NoResourceClaims
from testing.placement.views import verdicts
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import (
    DRIVER,
    claim,
    claim_of,
    class_of,
    consumer,
    device,
    device_class,
    request,
    resource_slice,
)


def allocated(name: str, node: str, on: str, *users: str, **more: object) -> dict[str, object]:
    """A claim that has been allocated before."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": on, **more}
    status = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [consumer(one) for one in users],
    }
    return claim(name, status=status)


def reason(world: World, name: str, *claims: str | None) -> set[str]:
    """Why the pod fits on no node."""
    found = verdicts(world.plugin, world.pod(name, *claims), world.view)
    assert not any(one.preemptible for one in found.values())
    return {reason for one in found.values() for reason in one.reasons}


def test_a_pod_waits_for_its_claims_and_is_told() -> None:
    world = World()
    unnamed, missing = world.pod("unnamed", ""), world.pod("missing", "c")
    for pod, why in (
        (unnamed, "pod claim c0: ResourceClaim not created yet"),
        (missing, 'resourceclaim "c" not found'),
    ):
        assert world.plugin.pre_enqueue(pod) == Status(Code.UNRESOLVABLE, "DynamicResources", why)
        assert reason(world, pod.name, pod.resource_claims[0].claim) == {why}
    world.put(claim("other"))
    assert world.woken == []
    world.put(claim("c"))
    assert world.woken == ["missing"] and world.plugin.pre_enqueue(missing).is_success
    world.woken.clear()
    going = claim("c")
    going["metadata"] |= {"deletionTimestamp": "2026-11-22T00:00:00Z", "resourceVersion": "11"}
    world.put(going)
    assert reason(world, "missing", "c") == {'resourceclaim "c" is being deleted'} and world.woken == []
    world.table.claims.delete(claim_of(going))
    again = claim("c")
    again["metadata"] |= {"uid": "another", "resourceVersion": "12"}
    world.put(again)
    assert world.woken == ["missing"] and world.fits(missing) == {"a", "b"}


def test_devices_that_are_reserved_are_used_until_they_are_given_back() -> None:
    world = World(claim("one"), claim("two", request(count=2)), claim("three"))
    first = world.reserved("p", "a", "one")
    assert world.used() == {"a/0"}
    assert world.fits(world.pod("q", "two")) == {"b"} and world.fits(world.pod("q", "three")) == {"a", "b"}
    assert world.reserve(world.pod("q", "two"), "a").reason == "cannot allocate all claims"
    world.reserved("q", "b", "two")
    assert world.fits(world.pod("r", "three")) == {"a"} and world.used() == {"a/0", "b/0", "b/1"}
    world.reserved("r", "a", "three")
    assert reason(world, "s", "one", "two") == {"resourceclaim not available on the node"}
    world.plugin.unreserve(first, "b")  # not where it is
    assert world.used() == {"a/0", "a/1", "b/0", "b/1"}
    for _ in range(2):
        world.plugin.unreserve(first, "a")
    assert world.used() == {"a/1", "b/0", "b/1"} and "room" in world.woken
    assert world.server.asked == [] and world.server.submitted == []


def test_what_is_written_is_the_finalizer_the_allocation_and_the_reservation() -> None:
    world = World(claim("c", request(count=2)))
    pod = world.reserved("p", "a", "c")
    assert world.plugin.concerns(pod) and world.pre_bind(pod, "a").is_success
    written = world.server.objects["c"]
    assert written["metadata"]["finalizers"] == [FINALIZER]
    results = [{"request": "r", "driver": DRIVER, "pool": "a", "device": one} for one in "01"]
    name = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    assert written["status"] == {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]},
            "allocationTimestamp": "2023-11-14T22:13:20Z",
        },
        "reservedFor": [consumer("p")],
    }
    assert world.used() == {"a/0", "a/1"} and not world.table.in_flight
    world.plugin.post_bind(pod, "a")
    assert not world.plugin.concerns(pod) and not world.table.made
    world.watch("c")
    assert world.fits(world.pod("q", "c")) == {"a"} and world.used() == {"a/0", "a/1"}


def test_a_late_event_does_not_undo_what_was_written() -> None:
    world = World(claim("c"))
    before = claim_of(world.server.objects["c"])
    pod = world.reserved("p", "a", "c")
    assert world.pre_bind(pod, "a").is_success
    world.table.claims.put(before)
    assert world.used() == {"a/0"}
    world.table.claims.replace([before])
    assert world.used() == {"a/0"}
    world.table.claims.replace([])
    assert world.used() == set()


def test_a_claim_that_somebody_else_allocated_is_not_ours() -> None:
    world = World(claim("c"))
    pod = world.reserved("p", "a", "c")
    theirs = allocated("c", "b", "1", "other")
    theirs["metadata"] |= {"resourceVersion": "11"}  # type: ignore[operator]
    world.server.put(theirs)
    status = world.pre_bind(pod, "a")
    assert status.reason == "claim shop/c got allocated elsewhere in the meantime"
    world.plugin.unreserve(pod, "a")
    world.settle()
    world.watch("c")
    assert world.server.devices("c") == ["b/1"] and world.used() == {"b/1"}
    assert world.fits(pod) == {"b"}


def test_devices_are_used_until_it_is_known_what_became_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "_BACKOFF", Backoff(0.0))
    world = World(claim("c"))
    assert world.plugin.writer is not None
    world.plugin.writer._backoff = Backoff(0.0)
    pod = world.reserved("p", "a", "c")

    def fails() -> ApiAnswer:
        """The allocation is carried out; nothing more is heard of the server for a while."""
        if "status" not in world.server.objects["c"]:
            world.server.after = fails
            return answered(200, json.dumps(world.server.objects["c"]).encode())
        world.server.says = [unanswered(TimeoutError())] * 11
        return world.server.says.pop()

    world.server.after = fails
    assert "cannot be read" in world.pre_bind(pod, "a").reason
    world.plugin.unreserve(pod, "a")
    assert world.used() == {"a/0"} and world.server.devices("c") == ["a/0"]
    assert reason(world, "q", "c") == {"resource claim shop/c is in the process of being given back"}
    world.server.says = [unanswered(TimeoutError())] * 6
    world.settle()
    assert world.used() == set() and world.server.devices("c") == []


def test_a_pod_that_is_seen_bound_keeps_what_it_has_though_nobody_answered() -> None:
    world = World(claim("c"))
    pod = world.reserved("p", "a", "c")
    world.assumed.add("p")
    world.see(pod, "a")
    assert world.pre_bind(pod, "a").is_success
    world.see(replace(pod, labels={"changed": "yes"}), "a")
    assert world.plugin.concerns(pod) and world.table.made
    world.assumed.clear()
    world.see(pod, "a")
    assert not world.plugin.concerns(pod) and not world.table.made
    world.plugin.unreserve(pod, "a")
    assert world.server.submitted == [] and world.server.users("c") == ["p"]


@pytest.mark.parametrize("end", [None, "b"])
def test_in_a_dry_run_devices_are_used_until_the_pod_is_gone_or_bound_by_others(end: str | None) -> None:
    world = World(claim("c"), dry_run=True)
    pod = world.reserved("p", "a", "c")
    world.plugin.post_bind(pod, "a")
    world.assumed.add("p")
    world.see(pod, "a")
    assert world.used() == {"a/0"}
    world.assumed.clear()
    world.see(pod, end)
    assert world.used() == set() and not world.table.in_flight and not world.plugin.concerns(pod)


def test_who_is_rejected_when_devices_are_chosen_is_told_of_room() -> None:
    world = World(claim("one", request(count=2)), claim("two"))
    first, second = world.reserved("p", "a", "one"), world.pod("q", "two")
    assert not world.reserve(second, "a").is_success
    world.plugin.unreserve(first, "a")
    assert world.woken == ["room"]
    for name in ("none", "c"):
        assert not world.reserve(world.pod("r", "c"), "a").is_success
        world.woken.clear()
        world.put(claim(name))
    assert world.woken == ["r"]


def test_what_the_server_refuses_is_told() -> None:
    world = World(claim("c"))
    pod = world.reserved("p", "a", "c")
    world.server.says = [answered(403, b'{"message": "no"}')]
    assert world.pre_bind(pod, "a").reason == "finalizer of claim shop/c: 403 no"
    world.plugin.unreserve(pod, "a")
    assert world.used() == set() and world.server.submitted == []


def test_pods_that_share_a_claim_use_it_together() -> None:
    world = World(claim("c"))
    first = world.reserved("p", "a", "c")
    assert world.fits(world.pod("q", "c")) == {"a"}
    assert not world.reserve(world.pod("q", "c"), "b").is_success
    second, third = world.reserved("q", "a", "c"), world.reserved("r", "a", "c")
    assert world.used() == {"a/0"}
    world.plugin.unreserve(first, "a")
    assert world.used() == {"a/0"}
    assert world.pre_bind(second, "a").is_success and world.pre_bind(third, "a").is_success
    assert world.server.users("c") == ["q", "r"] and world.server.devices("c") == ["a/0"]
    world.plugin.unreserve(second, "a")
    world.settle()
    assert world.server.users("c") == ["r"] and world.server.devices("c") == ["a/0"]
    world.plugin.post_bind(third, "a")
    fourth = world.reserved("s", "a", "c")
    assert world.pre_bind(fourth, "a").is_success
    world.plugin.unreserve(fourth, "a")
    world.settle()
    assert world.server.users("c") == ["r"]


def test_no_more_pods_than_a_claim_can_be_reserved_for() -> None:
    world = World(allocated("c", "a", "0", *(f"u{i}" for i in range(256))))
    assert reason(world, "p", "c") == {"resourceclaim in use: c is reserved for 256 pods"}
    assert world.fits(world.pod("u7", "c")) == {"a"}


def test_a_claim_that_keeps_its_only_pod_away_is_deallocated() -> None:
    world = World(allocated("c", "b", "1"), allocated("shared", "b", "0", "p", "q"))
    for name, users in (("c", ["deallocate"]), ("shared", [])):
        pod = world.pod("p", name)
        rejections = world.plugin.filter(pod, world.view)
        status = world.plugin.post_filter(pod, world.view, (), rejections)
        assert status.code is Code.UNSCHEDULABLE
        assert len(world.server.submitted) == len(users)
        world.settle()
    assert world.server.devices("c") == [] and world.server.devices("shared") == ["b/0"]
    assert world.fits(world.pod("p", "c")) == {"a", "b"}


def test_a_mistake_in_a_claim_is_told_and_fits_nowhere() -> None:
    world = World(claim("c", request("r", "device.nothing")), claim("d", request(of="nobody")))
    (said,) = reason(world, "p", "c")
    assert said.startswith("claim shop/c: selector #0: CEL runtime error for device gpu.example.com/a/0")
    assert reason(world, "p", "d") == {"resource claim shop/d, request r: device class nobody does not exist"}
    assert world.woken == []
    world.table.classes.put(class_of(device_class("nobody")))
    assert world.woken == ["room"] and world.fits(world.pod("p", "d")) == {"a", "b"}


def test_devices_of_a_rack() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["rack-b"]}]}]}
    world = World(claim("c"), claim("d"), slices=(resource_slice("s", device("x"), nodeSelector=terms),))
    assert world.fits(world.pod("p", "c")) == {"b"}
    pod = world.reserved("p", "b", "c")
    assert world.pre_bind(pod, "b").is_success
    assert world.server.status("c")["allocation"]["nodeSelector"] == terms
    assert world.fits(world.pod("q", "d")) == set()


def test_tolerations_configurations_and_administrators_are_handed_on() -> None:
    opaque = {"driver": DRIVER, "parameters": {"mode": "fast"}}
    tolerated = request("a", tolerations=[{"key": "x", "operator": "Exists", "tolerationSeconds": 30}])
    config = [
        {"requests": ["a"], "opaque": opaque},
        {"requests": ["nobody"], "opaque": opaque},
        {"opaque": opaque},
        {"requests": ["l/two"], "opaque": opaque},
    ]
    listed = request("l", first=[request("one", "false"), request("two")])
    world = World(claim("c", tolerated, listed, config=config), claim("m", request(adminAccess=True)))
    world.table.classes.replace([class_of(device_class(config=[{"opaque": opaque}]))])
    pod = world.reserved("p", "a", "c", "m")
    assert world.pre_bind(pod, "a").is_success
    devices = world.server.status("c")["allocation"]["devices"]
    assert devices["results"][0]["tolerations"] == [{"key": "x", "operator": "Exists", "tolerationSeconds": 30}]
    assert devices["results"][1]["request"] == "l/two"
    assert devices["config"] == [
        {"source": "FromClass", "requests": ["a", "l/two"], "opaque": opaque},
        {"source": "FromClaim", "requests": ["a"], "opaque": opaque},
        {"source": "FromClaim", "opaque": opaque},
        {"source": "FromClaim", "requests": ["l/two"], "opaque": opaque},
    ]
    assert world.server.status("m")["allocation"]["devices"]["results"][0]["adminAccess"] is True
    assert world.used() == {"a/0", "a/1"}


def test_nodes_where_the_first_wish_can_be_met_score_higher() -> None:
    fast = resource_slice("s-a", device("x", fast=True), node="a")
    slow = resource_slice("s-b", device("x", fast=False), node="b")
    first = request("fast", f'device.attributes["{DRIVER}"].fast')
    world = World(claim("c", request("r", first=[first, request("any")])), claim("d"), slices=(fast, slow))
    rows = np.flatnonzero(world.view.state.alive)
    pod = world.pod("p", "c")
    assert not world.plugin.skips(pod, world.view, rows)
    scores = dict(
        zip((world.view.state.names[row] for row in rows), world.plugin.score(pod, world.view, rows), strict=True)
    )
    assert scores == {"a": 100, "b": 87}
    assert world.plugin.skips(world.pod("q", "d"), world.view, rows)


def test_a_claim_that_is_replaced_by_another_of_its_name_is_another() -> None:
    world = World(claim("c"))
    pod = world.reserved("p", "a", "c")
    other = claim("c")
    other["metadata"] |= {"uid": "another", "resourceVersion": "20"}
    world.put(other)
    assert world.used() == set()
    assert world.pre_bind(pod, "a").reason == "claim shop/c got deleted in the meantime"
    world.plugin.unreserve(pod, "a")
    assert world.server.submitted == [] and world.fits(world.pod("q", "c")) == {"a", "b"}


def test_other_profiles_do_not_place_them() -> None:
    world = World()
    assert NoResourceClaims().filter(world.pod("p"), world.view) == ()
    (said,) = NoResourceClaims().filter(world.pod("p", "c"), world.view)
    assert said.nodes.all() and said.reason == "pods with ResourceClaims are placed by the gpu profile"


def test_figures() -> None:
    world = World(claim("one"), claim("two"), allocated("three", "b", "1"))
    world.reserved("p", "a", "one")
    assert world.plugin.writer is not None
    collector = DraCollector(world.table, world.plugin.feasibility, world.plugin.writer.writes)
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
    }
    for state in ("open", "in_flight", "allocated"):
        assert values["forecast_gpu_dra_claims", state] == 1
    assert values["forecast_gpu_dra_devices", DRIVER] == 4 and values["forecast_gpu_dra_devices_used", DRIVER] == 2
    assert values["forecast_gpu_dra_pools", "usable"] == 2 and values["forecast_gpu_dra_searches_total",] == 1


def test_a_claim_with_a_device_that_needs_something_of_the_kubelet_is_refused() -> None:
    world = World(allocated("c", "a", "0", skipNodeOperations=["Prepare"]))
    assert all("needs DRAOptionalNodeOperations" in one for one in reason(world, "p", "c"))


def test_a_claim_whose_device_takes_memory_of_the_node_is_not_shared_uncounted() -> None:
    takes = device("0") | {"nodeAllocatableResources": {"memory": {"overhead": {"perPod": "1Gi"}}}}
    world = World(allocated("c", "a", "0", "other"), slices=(resource_slice("a", takes, node="a"),))
    (says,) = reason(world, "p", "c")
    assert says.startswith("resource claim shop/c has device gpu.example.com/a/0, which needs DRANodeAllocatable")
