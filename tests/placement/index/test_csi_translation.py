"""Against k8s.io/csi-translation-lib/plugins and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.storage_objects import StorageClassInfo, VolumeInfo
from placement.index.csi_translation import disk_volume, provisioner_driver, translated_terms, volume_in_csi
from tests.placement.storage_cluster import decoded
from tests.placement.storage_manifests import term, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
GKE = "topology.gke.io/zone"
EBS = "ebs.csi.aws.com"


def info(*, labels: Mapping[str, str] | None = None, **spec: Any) -> VolumeInfo:
    made = decoded(volume("pv", labels=labels, **spec))
    assert isinstance(made, VolumeInfo)
    return made


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        ({"csi": {"driver": "x", "volumeHandle": "h"}}, {}, ("x", "h")),
        ({"csi": {"driver": "x", "volumeHandle": ""}}, {}, None),
        ({"hostPath": {"path": "/"}}, {}, None),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1/vol-1"}}, {}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, {}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws:///other"}}, {}, None),
        ({"awsElasticBlockStore": {"volumeID": "aws://["}}, {}, None),
        ({"azureDisk": {"diskName": "d", "diskURI": "/uri"}}, {}, ("disk.csi.azure.com", "/uri")),
        ({"azureDisk": {"diskName": "d", "diskURI": "/uri", "kind": "Managed"}}, {}, ("disk.csi.azure.com", "/uri")),
        ({"azureDisk": {"diskName": "d", "diskURI": "/uri", "kind": "Dedicated"}}, {}, None),
        ({"cinder": {"volumeID": "c"}}, {}, ("cinder.csi.openstack.org", "c")),
        ({"portworxVolume": {"volumeID": "p"}}, {}, ("pxd.portworx.com", "p")),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-central1-a"},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/us-central1-a/disks/d"),
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {BETA_ZONE: "us-central1-a__us-central1-c", ZONE: "ignored"},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/regions/us-central1/disks/d"),
        ),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "us-central1-a__eu-west1-c"}, None),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a__b"}, None),
    ],
)
def test_what_a_volume_counts_as(
    spec: dict[str, Any], labels: Mapping[str, str], expected: tuple[str, str] | None
) -> None:
    assert volume_in_csi(info(labels=labels, **spec)) == expected


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        (("aws", "vol-1"), (EBS, "vol-1")),
        (("aws", "aws://zone/vol-1"), (EBS, "vol-1")),
        (("gce", "d"), ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        (("azure", "/uri"), ("disk.csi.azure.com", "/uri")),
        (("cinder", "c"), ("cinder.csi.openstack.org", "c")),
        (("portworx", "p"), ("pxd.portworx.com", "p")),
        (("rbd", "pool", "image", "mon"), None),
        (("iscsi", "iqn"), None),
    ],
)
def test_what_a_disk_named_in_a_pod_counts_as(disk: tuple[str, ...], expected: tuple[str, str] | None) -> None:
    assert disk_volume(disk) == expected


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("kubernetes.io/aws-ebs", EBS),
        ("csi.example.com", "csi.example.com"),
        ("kubernetes.io/azure-file", ""),
        ("kubernetes.io/vsphere-volume", ""),
        ("kubernetes.io/no-provisioner", "kubernetes.io/no-provisioner"),
    ],
)
def test_the_driver_of_a_class(provisioner: str, driver: str) -> None:
    assert provisioner_driver(StorageClassInfo("c", provisioner)) == driver


def terms(*requirements: tuple[str, list[str]]) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(tuple(Requirement(key, Operator.IN, tuple(values)) for key, values in requirements)),)


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        ({}, {}, None),
        ({}, term(ZONE, "a"), terms((GKE, ["a"]))),
        ({}, term(BETA_ZONE, "a"), terms((GKE, ["a"]))),
        ({}, term(BETA_REGION, "r"), terms((BETA_REGION, ["r"]))),
        ({BETA_ZONE: "a"}, term(BETA_REGION, "r"), terms((REGION, ["r"]), (GKE, ["a"]))),
        ({ZONE: "b__a__ "}, {}, terms((GKE, ["a", "b"]))),
        ({BETA_ZONE: "a"}, {}, terms((GKE, ["a"]))),
        ({ZONE: "a", BETA_ZONE: "b"}, {}, terms((GKE, ["a"]))),
        ({ZONE: "b"}, term(ZONE, "a"), terms((GKE, ["a"]))),
        ({ZONE: ""}, {}, None),
    ],
)
def test_node_terms_of_a_migrated_volume(
    labels: Mapping[str, str], affinity: dict[str, Any], expected: tuple[NodeSelectorTerm, ...] | None
) -> None:
    assert translated_terms(info(labels=labels, gcePersistentDisk={"pdName": "d"}, **affinity)) == expected


def test_node_terms_of_other_volumes_stay() -> None:
    for source in ({"csi": {"driver": "x", "volumeHandle": "h"}}, {"azureDisk": {"diskName": "d", "diskURI": "u"}}):
        assert translated_terms(info(labels={ZONE: "a"}, **source, **term(ZONE, "a"))) == terms((ZONE, ["a"]))
