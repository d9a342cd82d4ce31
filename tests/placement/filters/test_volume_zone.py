"""Cases of pkg/scheduler/framework/plugins/volumezone/volume_zone_test.go, under their names there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from placement.filters.volume_zone import VolumeZone
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import claim, pod, storage_class, using, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"

WEST, OTHER, BOTH = "us-west1-a", "us-west1-b", "us-west1-c__us-west1-a"

CASES: list[tuple[str, Mapping[str, str], Mapping[str, str], bool]] = [
    # name, labels of the volume, labels of the node, fits
    ("node without labels", {BETA_ZONE: WEST}, {}, True),
    ("beta zone label matched", {BETA_ZONE: WEST}, {BETA_ZONE: WEST, "uselessLabel": "none"}, True),
    ("beta region label matched", {BETA_REGION: "us-west1", "uselessLabel": "none"}, {BETA_REGION: "us-west1"}, True),
    ("beta region label doesn't match", {BETA_REGION: "us-west1"}, {BETA_REGION: "no_us-west1"}, False),
    ("beta zone label doesn't match", {BETA_ZONE: WEST}, {BETA_ZONE: "no_us-west1-a"}, False),
    ("zone label matched", {ZONE: WEST}, {ZONE: WEST}, True),
    ("zone label doesn't match", {ZONE: WEST}, {ZONE: "no_us-west1-a"}, False),
    ("pv with zone and region, node with only zone", {ZONE: WEST, REGION: WEST}, {ZONE: WEST}, False),
    ("pv with zone,node with beta zone", {ZONE: WEST}, {BETA_ZONE: WEST}, False),
    ("pv with beta label,node with ga label, matched", {BETA_ZONE: WEST}, {ZONE: WEST}, True),
    ("pv with beta label,node with ga label, don't match", {BETA_ZONE: WEST}, {ZONE: OTHER}, False),
    ("pv with beta label, node with both", {BETA_ZONE: WEST}, {BETA_ZONE: OTHER, ZONE: WEST}, False),
    ("several zones: beta zone label matched", {BETA_ZONE: BOTH}, {BETA_ZONE: WEST}, True),
    ("several zones: beta zone label doesn't match", {BETA_ZONE: BOTH}, {BETA_ZONE: OTHER}, False),
    ("zones with an empty part are ignored", {ZONE: "us-west1-a__"}, {ZONE: OTHER}, True),
    ("zones are trimmed", {ZONE: " us-west1-a __x"}, {ZONE: WEST}, True),
]


@pytest.mark.parametrize(("labels", "node_labels", "fits"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_zones_of_bound_volumes(labels: Mapping[str, str], node_labels: Mapping[str, str], fits: bool) -> None:
    cluster = StorageCluster(
        [
            {"kind": "Node", "metadata": {"name": "host1", "labels": dict(node_labels)}},
            volume("pv", claim="pvc", labels=labels),
            claim("pvc", volume="pv"),
        ]
    )
    rejected = {"host1": {"node(s) had no available volume zone": False}}
    assert cluster.reasons(VolumeZone(), pod("p", *using("pvc"))) == ({} if fits else rejected)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("PVC_1", ""),
        ("PVC_EmptySC", "PersistentVolumeClaim had no pv name and storageClass name"),
        ("PVC_NoSC", 'storageclass.storage.k8s.io "Class_0" not found'),
        ("PVC_ImmediateSC", "PersistentVolume had no name"),
        ("PVC_ModelessSC", 'VolumeBindingMode not set for StorageClass "Class_Modeless"'),
        ("PVC_WaitSC", ""),
        ("PVC_of_missing_volume", 'persistentvolume "gone" not found'),
        ("missing", 'persistentvolumeclaim "missing" not found'),
    ],
)
def test_claims_that_have_no_volume(name: str, reason: str) -> None:
    cluster = StorageCluster(
        [
            {"kind": "Node", "metadata": {"name": "host1", "labels": {BETA_ZONE: WEST}}},
            storage_class("Class_Immediate", mode="Immediate"),
            storage_class("Class_Modeless", mode=None),
            storage_class("Class_Wait"),
            volume("Vol_1", claim="PVC_1", labels={BETA_ZONE: WEST}),
            claim("PVC_1", volume="Vol_1"),
            claim("PVC_EmptySC"),
            claim("PVC_NoSC", storage_class="Class_0"),
            claim("PVC_ImmediateSC", storage_class="Class_Immediate"),
            claim("PVC_ModelessSC", storage_class="Class_Modeless"),
            claim("PVC_WaitSC", storage_class="Class_Wait"),
            claim("PVC_of_missing_volume", volume="gone"),
        ]
    )
    assert cluster.reasons(VolumeZone(), pod("p", *using(name))) == ({"host1": {reason: False}} if reason else {})


def test_ephemeral_volumes_and_disks_are_not_looked_at() -> None:
    cluster = StorageCluster([{"kind": "Node", "metadata": {"name": "host1", "labels": {ZONE: WEST}}}])
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    assert cluster.reasons(VolumeZone(), pod("p", {"ephemeral": {}}, disk, {"emptyDir": {}})) == {}
