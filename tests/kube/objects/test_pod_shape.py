"""Pods that differ in a name are alike; in anything that matters to a node, they are not."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from forecast.service_key import Owner
from kube.objects.constraints import HostPort, PodConstraints, PodVolume
from kube.objects.objects import ContainerRequests, DeviceAsk, PodInfo, PodPhase, PodResourceClaim, QosClass
from kube.objects.pod_shape import is_like, on_node, on_nodes
from tests.kube.api_objects import pod

WAITING = pod(
    "cart-1", owner=Owner("ReplicaSet", "cart"), owner_uid="rs", labels={"app": "cart"}, phase=PodPhase.PENDING
)
OTHERWISE: dict[str, Any] = {
    "uid": "other",
    "namespace": "bank",
    "name": "cart-2",
    "node": "n1",
    "labels": {"app": "till"},
    "annotations": {"forecast-scheduler.io/policy": "spread"},
    "owner": Owner("ReplicaSet", "till"),
    "owner_uid": "rs-2",
    "requests": {"cpu": 3.0},
    "nonzero_requests": (3.0, 1.0),
    "limits": {"cpu": 3.0},
    "qos": QosClass.BEST_EFFORT,
    "phase": PodPhase.RUNNING,
    "terminating": True,
    "started": 7.0,
    "created": 7.0,
    "scheduler_name": "forecast-scheduler",
    "priority": 5,
    "constraints": PodConstraints(node_selector=(("a", "b"),)),
    "host_ports": (HostPort("0.0.0.0", "TCP", 80),),
    "volumes": (PodVolume(claim="data"),),
    "images": ("busybox",),
    "image_volumes": 1,
    "gates": ("wait",),
    "may_preempt": False,
    "nominated_node": "n1",
    "finished": 7.0,
    "status_reason": "Evicted",
    "uses_host": True,
    "is_preparing": True,
    "resource_claims": (PodResourceClaim("gpu", "claim"),),
    "device_asks": (DeviceAsk("main", 0, "example.com/card", 0, 1, False),),
    "needed_features": ("VolumeBindMountOptions",),
    "containers": ContainerRequests((), ({"cpu": 1.0}, {"cpu": 1.0})),
    "scheduling_group": "train",
    "scheduled": 7.0,
    "ready": 7.0,
    "local_volumes": ("scratch",),
    "shares_host": True,
    "stands_in": True,
    "set_aside": {"cpu": 3.0},
    "acknowledged": True,
}


def test_every_field_is_looked_at() -> None:
    assert OTHERWISE.keys() == {field.name for field in fields(PodInfo)}


@pytest.mark.parametrize("field", OTHERWISE)
def test_pods_are_alike_in_all_but_uid_name_and_age(field: str) -> None:
    other = replace(WAITING, **{field: OTHERWISE[field]})
    assert is_like(WAITING, other) == is_like(other, WAITING) == (field in ("uid", "name", "created"))


@pytest.mark.parametrize(("field", "value"), [("node", "n1"), ("phase", PodPhase.FAILED)])
def test_pods_that_do_not_wait_are_like_none(field: str, value: object) -> None:
    elsewhere = replace(WAITING, **{field: value})  # type: ignore[arg-type]
    assert not is_like(elsewhere, elsewhere)


def test_alike_pods_need_equal_pieces_and_copies_keep_what_is_their_own() -> None:
    assert is_like(WAITING, replace(WAITING, labels=dict(WAITING.labels), requests=dict(WAITING.requests)))
    everything = replace(WAITING, **OTHERWISE)
    assert on_node(everything, "n9") == replace(everything, node="n9")
    assert everything.node == "n1"
    assert hash(on_node(WAITING, "n9").constraints) == hash(WAITING.constraints)
    pods = [replace(WAITING, uid=f"u{i}", name=f"cart-{i}", created=float(i)) for i in range(3)]
    like = replace(WAITING, requests={"cpu": 1.0})
    assert on_nodes(like, pods, ["a", "b", "a"]) == [
        replace(one, node=node, requests={"cpu": 1.0}) for one, node in zip(pods, "aba", strict=True)
    ]
    assert on_nodes(like, [], []) == []
