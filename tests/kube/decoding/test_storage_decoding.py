from __future__ import annotations

import json
from typing import Any

import pytest

from kube.decoding.decoding import Kind, decode_event, decode_list, decode_object
from kube.decoding.watched_kinds import EventType, UndecodableObject
from kube.objects.constraints import LabelSelector, NodeSelectorTerm, Operator, Requirement
from kube.objects.storage_objects import (
    BindingMode,
    ClaimReference,
    CsiDriverInfo,
    CsiNodeInfo,
    StorageCapacityInfo,
    StorageClassInfo,
    VolumeAttachmentInfo,
    VolumeClaimInfo,
    VolumeInfo,
    VolumeSource,
)

HOSTNAME = "kubernetes.io/hostname"
ON_N1 = NodeSelectorTerm((Requirement(HOSTNAME, Operator.IN, ("n1",)),))

CASES: list[tuple[Kind, dict[str, Any], object]] = [
    (
        Kind.VOLUMES,
        {
            "metadata": {
                "name": "pv",
                "resourceVersion": "7",
                "labels": {"zone": "a"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "volumeMode": "Block",
                "volumeAttributesClassName": "gold",
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "c", "uid": "u"},
                "csi": {"driver": "d", "volumeHandle": "h", "fsType": "ext4"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1"]}]}
                        ]
                    }
                },
                "persistentVolumeReclaimPolicy": "Delete",
            },
            "status": {"phase": "Available"},
        },
        VolumeInfo(
            name="pv",
            labels={"zone": "a"},
            storage_class="fast",
            capacity=2.0**30,
            access_modes=frozenset({"ReadWriteOnce"}),
            mode="Block",
            attributes_class="gold",
            claim=ClaimReference("shop", "c", "u"),
            is_available=True,
            terminating=True,
            node_terms=(ON_N1,),
            source=VolumeSource("kubernetes.io/csi", "d", "h"),
        ),
    ),
    (Kind.VOLUMES, {"metadata": {"name": "pv"}}, VolumeInfo("pv", {})),
    (
        Kind.CLAIMS,
        {
            "metadata": {
                "name": "c",
                "namespace": "shop",
                "uid": "u",
                "annotations": {
                    "pv.kubernetes.io/bind-completed": "yes",
                    "volume.kubernetes.io/selected-node": "n1",
                    "other": None,
                },
                "ownerReferences": [
                    {"kind": "X", "name": "x", "uid": "x"},
                    {"kind": "Pod", "name": "p", "uid": "p1", "controller": True},
                ],
            },
            "spec": {
                "accessModes": ["ReadWriteOncePod"],
                "resources": {"requests": {"storage": "1500m"}},
                "storageClassName": "fast",
                "volumeName": "pv",
                "selector": {"matchLabels": {"disk": "ssd"}},
            },
            "status": {"phase": "Lost"},
        },
        VolumeClaimInfo(
            namespace="shop",
            name="c",
            uid="u",
            owner_uid="p1",
            storage_class="fast",
            access_modes=frozenset({"ReadWriteOncePod"}),
            requested=1.5,
            selector=LabelSelector((Requirement("disk", Operator.IN, ("ssd",)),)),
            volume="pv",
            is_bound=True,
            is_lost=True,
            selected_node="n1",
        ),
    ),
    (
        Kind.CLAIMS,
        {"metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": ""}}, "spec": {"volumeName": ""}},
        VolumeClaimInfo("default", "c"),
    ),
    (
        Kind.CLAIMS,
        {
            "metadata": {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {"storageClassName": "new"},
        },
        VolumeClaimInfo("default", "c", storage_class="old"),
    ),
    (
        Kind.STORAGE_CLASSES,
        {
            "metadata": {"name": "fast"},
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": HOSTNAME, "values": ["n1"]}]},
                {"matchLabelExpressions": None},
            ],
            "parameters": {"type": "ssd"},
        },
        StorageClassInfo("fast", "d", BindingMode.WAIT_FOR_FIRST_CONSUMER, (ON_N1, NodeSelectorTerm())),
    ),
    (
        Kind.STORAGE_CLASSES,
        {"metadata": {"name": "s"}, "provisioner": "d", "volumeBindingMode": "Immediate"},
        StorageClassInfo("s", "d", BindingMode.IMMEDIATE),
    ),
    (
        Kind.STORAGE_CLASSES,
        {"metadata": {"name": "s"}, "provisioner": "d"},
        StorageClassInfo("s", "d", None),
    ),
    (
        Kind.CSI_NODES,
        {
            "metadata": {
                "name": "n1",
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/a,kubernetes.io/b"},
            },
            "spec": {
                "drivers": [
                    {"name": "d", "nodeID": "n1", "topologyKeys": None, "allocatable": {"count": 25}},
                    {"name": "e", "nodeID": "n1", "topologyKeys": []},
                    {"name": "f", "nodeID": "n1", "allocatable": {}},
                ]
            },
        },
        CsiNodeInfo("n1", {"d": 25}, frozenset({"kubernetes.io/a", "kubernetes.io/b"}), frozenset("def")),
    ),
    (Kind.CSI_NODES, {"metadata": {"name": "n1"}, "spec": {"drivers": None}}, CsiNodeInfo("n1", {})),
    (Kind.CSI_DRIVERS, {"metadata": {"name": "d"}, "spec": {"storageCapacity": True}}, CsiDriverInfo("d", True)),
    (Kind.CSI_DRIVERS, {"metadata": {"name": "d"}}, CsiDriverInfo("d")),
    (
        Kind.CSI_DRIVERS,
        {"metadata": {"name": "d"}, "spec": {"preventPodSchedulingIfMissing": True}},
        CsiDriverInfo("d", is_required=True),
    ),
    (
        Kind.STORAGE_CAPACITIES,
        {
            "metadata": {"name": "c", "namespace": "csi"},
            "storageClassName": "fast",
            "capacity": "1Gi",
            "maximumVolumeSize": "1Mi",
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "n1"}},
        },
        StorageCapacityInfo("csi", "c", "fast", 2.0**20, LabelSelector(ON_N1.expressions)),
    ),
    (
        Kind.STORAGE_CAPACITIES,
        {"metadata": {"name": "c", "namespace": "csi"}, "storageClassName": "fast", "capacity": "0"},
        StorageCapacityInfo("csi", "c", "fast", 0.0, None),
    ),
    (
        Kind.STORAGE_CAPACITIES,
        {"metadata": {"name": "c", "namespace": "csi"}, "storageClassName": "fast", "nodeTopology": {}},
        StorageCapacityInfo("csi", "c", "fast", None, LabelSelector()),
    ),
    (
        Kind.VOLUME_ATTACHMENTS,
        {
            "metadata": {"name": "a"},
            "spec": {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}},
            "status": {"attached": True},
        },
        VolumeAttachmentInfo("a", "n1", "d", "pv"),
    ),
    (
        Kind.VOLUME_ATTACHMENTS,
        {"metadata": {"name": "a"}, "spec": {"attacher": "d", "nodeName": "n1", "source": {"inlineVolumeSpec": {}}}},
        VolumeAttachmentInfo("a", "n1", "d", ""),
    ),
]


@pytest.mark.parametrize(("kind", "manifest", "expected"), CASES)
def test_objects_are_read(kind: Kind, manifest: dict[str, Any], expected: object) -> None:
    body = json.dumps(manifest).encode()
    decoded, resource_version = decode_object(kind, body)
    assert decoded == expected
    assert resource_version == manifest["metadata"].get("resourceVersion", "")
    event = decode_event(kind, b'{"type": "MODIFIED", "object": ' + body + b"}")
    assert (event.type, event.object) == (EventType.MODIFIED, expected)


@pytest.mark.parametrize("slash", ["/", "\\/"])
def test_annotations_are_found_however_their_slash_is_written(slash: str) -> None:
    body = json.dumps({"metadata": {"name": "c", "annotations": {"volume.kubernetes.io/selected-node": "n"}}})
    body = body.replace("/", slash)
    decoded, _ = decode_object(Kind.CLAIMS, body.encode())
    assert isinstance(decoded, VolumeClaimInfo) and decoded.selected_node == "n"


@pytest.mark.parametrize(
    ("kind", "manifest", "message"),
    [
        (Kind.VOLUMES, {"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "much"}}}, "PersistentVolume pv"),
        (Kind.VOLUMES, {"spec": {}}, "PersistentVolume cannot be read"),
        (Kind.CLAIMS, {"metadata": {"name": "c", "namespace": "s"}, "spec": []}, "PersistentVolumeClaim s/c"),
        (Kind.STORAGE_CLASSES, {"metadata": {"name": "s"}, "provisioner": 5}, "StorageClass s"),
        (
            Kind.STORAGE_CAPACITIES,
            {"metadata": {"name": "c"}, "nodeTopology": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "operator 'Near'",
        ),
    ],
)
def test_what_is_no_such_object_is_named(kind: Kind, manifest: dict[str, Any], message: str) -> None:
    with pytest.raises(UndecodableObject, match=message):
        decode_object(kind, json.dumps(manifest).encode())
    page = decode_list(kind, json.dumps({"items": [manifest, {"metadata": {"name": "good"}}]}).encode())
    assert [one.name for one in page.objects] == ["good"]
    assert len(page.undecodable) == 1
