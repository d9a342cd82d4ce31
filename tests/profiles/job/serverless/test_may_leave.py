"""What may leave the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from profiles.job.job_annotations import may_leave, terms_of
from testing.placement.views import pod_with


def why_not(spec: dict[str, Any], **metadata: Any) -> str:
    pod = pod_with(spec, **metadata)
    return may_leave(pod, terms_of(pod))


@pytest.mark.parametrize(
    ("volume", "stays"),
    [
        ({"configMap": {"name": "c"}}, False),
        ({"secret": {"secretName": "s"}}, False),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"projected": {"sources": []}}, False),
        ({"downwardAPI": {}}, False),
        ({"image": {"reference": "registry.example/data:1"}}, False),
        ({"hostPath": {"path": "/data"}}, True),
        ({"persistentVolumeClaim": {"claimName": "c"}}, True),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, True),
        ({"nfs": {"server": "s", "path": "/"}}, True),
        ({"csi": {"driver": "d"}}, True),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, True),
    ],
)
def test_volumes_come_along_only_if_the_api_server_has_them(volume: dict[str, Any], stays: bool) -> None:
    why = why_not({"volumes": [{"name": "w", "emptyDir": {}}, {"name": "v"} | volume]})
    assert "volumes" in why if stays else why == ""


@pytest.mark.parametrize(
    ("kind", "stays"), [("DaemonSet", True), ("Node", True), ("Job", False), ("ReplicaSet", False)]
)
def test_pods_that_are_there_for_their_node_stay(kind: str, stays: bool) -> None:
    owner = {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    assert bool(why_not({}, ownerReferences=[owner])) == stays
