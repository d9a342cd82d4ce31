"""What may leave the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.profiles.job.job_annotations import terms_of
from scheduler.profiles.job.serverless.may_leave import may_leave
from testing.placement.views import pod_with


def why_not(spec: dict[str, Any], **metadata: Any) -> str:
    pod = pod_with(spec, **metadata)
    return may_leave(pod, terms_of(pod))


@pytest.mark.parametrize(
    "volume",
    [
        {"configMap": {"name": "c"}},
        {"secret": {"secretName": "s"}},
        {"emptyDir": {"medium": "Memory"}},
        {"projected": {"sources": []}},
        {"downwardAPI": {}},
        {"image": {"reference": "registry.example/data:1"}},
    ],
)
def test_volumes_that_the_api_server_has_come_along(volume: dict[str, Any]) -> None:
    assert why_not({"volumes": [{"name": "v"} | volume]}) == ""


@pytest.mark.parametrize(
    "volume",
    [
        {"hostPath": {"path": "/data"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"nfs": {"server": "s", "path": "/"}},
        {"csi": {"driver": "d"}},
        {"awsElasticBlockStore": {"volumeID": "v"}},
    ],
)
def test_all_others_stay(volume: dict[str, Any]) -> None:
    harmless = {"name": "w", "emptyDir": {}}
    assert "volumes" in why_not({"volumes": [harmless, {"name": "v"} | volume]})


@pytest.mark.parametrize(
    ("kind", "stays"), [("DaemonSet", True), ("Node", True), ("Job", False), ("ReplicaSet", False)]
)
def test_pods_that_are_there_for_their_node_stay(kind: str, stays: bool) -> None:
    owner = {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    assert bool(why_not({}, ownerReferences=[owner])) == stays
