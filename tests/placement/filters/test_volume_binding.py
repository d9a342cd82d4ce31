"""Cases of pkg/scheduler/framework/plugins/volumebinding/*_test.go, with their names there, and a few more."""

from __future__ import annotations

from typing import Any

import pytest

from placement.filters.volume_binding import VolumeBinding
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import (
    capacity,
    claim,
    csi_driver,
    csi_node,
    node,
    pod,
    storage_class,
    term,
    using,
    volume,
)

PROVISIONER = "test-provisioner"
NODE = "nodeKey"

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"

CLASSES = [
    storage_class("wait"),
    storage_class("now", "", "Immediate"),
    storage_class("make", PROVISIONER, topology={NODE: ["node1", "reference-value"]}),
    storage_class("elsewhere", PROVISIONER, topology={NODE: ["reference-value"]}),
    storage_class("modeless", PROVISIONER, None),
]

CLAIMS = {
    "unbound": claim("unbound", "1G", storage_class="wait"),
    "unbound2": claim("unbound2", "5G", storage_class="wait"),
    "prebound": claim("prebound", "1G", storage_class="wait", volume="pv-node1a", bound=False),
    "bound": claim("bound", "1G", storage_class="wait", volume="pv-bound"),
    "now-unbound": claim("now-unbound", "1G", storage_class="now"),
    "now-bound": claim("now-bound", "1G", storage_class="now", volume="pv-now"),
    "make": claim("make", storage_class="make"),
    "make2": claim("make2", storage_class="make"),
    "no-provisioner": claim("no-provisioner", storage_class="wait"),
    "elsewhere": claim("elsewhere", storage_class="elsewhere"),
    "modeless": claim("modeless", storage_class="modeless"),
    "classless": claim("classless"),
    "of-missing-class": claim("of-missing-class", storage_class="gone"),
    "selected": claim("selected", storage_class="make", annotations={"volume.kubernetes.io/selected-node": "node1"}),
    "selected2": claim("selected2", storage_class="make", annotations={"volume.kubernetes.io/selected-node": "node2"}),
    "lost": claim("lost", storage_class="wait", volume="pv-a", phase="Lost"),
    "owned": claim("p-mine", "1G", storage_class="wait", volume="pv-bound", owner="uid-p"),
    "not-owned": claim("p-theirs", "1G", storage_class="wait", volume="pv-bound", owner="uid-q"),
}
CLAIMS["going"] = claim("going", storage_class="wait")
CLAIMS["going"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

VOLUMES = {
    "1a": volume("pv-node1a", "5G", storage_class="wait", **term(NODE, "node1")),
    "1b": volume("pv-node1b", "10G", storage_class="wait", **term(NODE, "node1")),
    "2": volume("pv-node2", "1G", storage_class="wait", **term(NODE, "node2")),
    "bound": volume("pv-bound", "1G", storage_class="wait", claim="bound", **term(NODE, "node1")),
    "now": volume("pv-now", "1G", storage_class="now", claim="now-bound", **term(NODE, "node1")),
    "now node2": volume("pv-now", "1G", storage_class="now", claim="now-bound", **term(NODE, "node2")),
    "1a for unbound": volume("pv-node1a", "5G", storage_class="wait", claim="unbound", **term(NODE, "node1")),
    "2 for unbound": volume("pv-node2", "5G", storage_class="wait", claim="unbound", **term(NODE, "node2")),
    "small for unbound": volume("pv-small", "1M", storage_class="wait", claim="unbound", **term(NODE, "node2")),
}

CASES: list[tuple[str, list[str], list[str], list[str]]] = [
    # name, claims of the pod, volumes, reasons for node1
    ("no-volumes", [], [], []),
    ("bound-pvc", ["bound"], ["bound"], []),
    ("bound-pvc,pv-not-exists", ["bound"], [], [VOLUME_MISSING]),
    ("prebound-pvc", ["prebound"], ["1a"], [UNBOUND]),
    ("unbound-pvc,pv-different-node", ["unbound"], ["2"], [BIND_CONFLICT]),
    ("two-unbound-pvcs,order-by-size", ["unbound2", "unbound"], ["1a", "1b"], []),
    ("two-unbound-pvcs,partial-match", ["unbound", "unbound2"], ["1a"], [BIND_CONFLICT]),
    ("immediate-bound-pvc", ["now-bound"], ["now"], []),
    ("immediate-bound-pvc-wrong-node", ["now-bound"], ["now node2"], [NODE_CONFLICT]),
    ("immediate-unbound-pvc", ["now-unbound"], [], [UNBOUND]),
    ("bound and unbound unsatisfied", ["now-bound", "unbound"], ["now node2", "2"], [NODE_CONFLICT, BIND_CONFLICT]),
    ("volume kept for the claim", ["unbound"], ["1a for unbound"], []),
    ("volume kept for the claim elsewhere, others here", ["unbound"], ["2 for unbound", "1b"], [BIND_CONFLICT]),
    ("volume kept for the claim too small, others here", ["unbound"], ["small for unbound", "1b"], []),
    ("volume kept for another claim", ["unbound2"], ["1a for unbound"], [BIND_CONFLICT]),
    ("the same claim twice", ["unbound", "unbound"], ["1a"], [BIND_CONFLICT]),
    ("the same claim twice, a volume kept for it, another", ["unbound", "unbound"], ["1a for unbound", "1b"], []),
    ("one-provisioned", ["make"], [], []),
    ("two-unbound-pvcs,one-matched,one-provisioned", ["unbound", "make"], ["1a"], []),
    ("one-binding,one-selected-node", ["bound", "selected"], ["bound"], []),
    ("selected for another node", ["selected2"], [], [BIND_CONFLICT]),
    ("invalid-provisioner", ["no-provisioner"], [], [BIND_CONFLICT]),
    ("volume-topology-unsatisfied", ["elsewhere"], [], [BIND_CONFLICT]),
    ("PVC does not exist", ["missing"], [], ['persistentvolumeclaim "missing" not found']),
    ("claim lost", ["lost"], [], ['persistentvolumeclaim "lost" bound to non-existent persistentvolume "pv-a"']),
    ("claim is being deleted", ["going"], [], ['persistentvolumeclaim "going" is being deleted']),
    ("class without a mode", ["modeless"], [], ['VolumeBindingMode not set for StorageClass "modeless"']),
    ("claim without a class", ["classless"], ["1a"], [UNBOUND]),
    ("claim of a class that is not there", ["of-missing-class"], ["1a"], [UNBOUND]),
]


def cluster_of(*more: dict[str, Any], driver: bool = False) -> StorageCluster:
    nodes = [node("node1", nodeKey="node1"), node("node2", nodeKey="node2")]
    return StorageCluster([*nodes, *CLASSES, *CLAIMS.values(), csi_driver(PROVISIONER, reports_capacity=driver), *more])


def reasons(cluster: StorageCluster, *volumes: dict[str, Any]) -> list[str]:
    found = cluster.reasons(VolumeBinding(), pod("p", *volumes)).get("node1", {})
    assert not any(found.values()), "evicting pods moves no volume"
    return list(found)


@pytest.mark.parametrize(
    ("claims", "volumes", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_claims_and_volumes(claims: list[str], volumes: list[str], expected: list[str]) -> None:
    assert reasons(cluster_of(*(VOLUMES[name] for name in volumes)), *using(*claims)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", ['waiting for ephemeral volume controller to create the persistentvolumeclaim "p-none"']),
        ("mine", []),
        ("theirs", ["PVC default/p-theirs was not created for pod default/p (pod is not owner)"]),
    ],
)
def test_claims_of_ephemeral_volumes(name: str, expected: list[str]) -> None:
    cluster = cluster_of(VOLUMES["bound"])
    found = cluster.reasons(VolumeBinding(), pod("p", {"name": name, "ephemeral": {}})).get("node1", {})
    assert list(found) == expected


HERE, THERE = {NODE: "node1"}, {NODE: "node2"}


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        pytest.param([("make", {}, "1Gi", None)], [], id="network-attached"),
        pytest.param([], [NO_SPACE], id="no-storage"),
        pytest.param([("make", THERE, "1Gi", None)], [NO_SPACE], id="wrong-node"),
        pytest.param([("wait", HERE, "1Gi", None)], [NO_SPACE], id="wrong-storage-class"),
        pytest.param([("make", HERE, "1Mi", None)], [NO_SPACE], id="insufficient-storage"),
        pytest.param([("make", HERE, "1Gi", "1Mi")], [NO_SPACE], id="insufficient-volume-size"),
        pytest.param([("make", HERE, "1Mi", "1Gi")], [], id="sufficient-volume-size"),
        pytest.param([("make", HERE, None, "0Mi")], [NO_SPACE], id="zero-volume-size"),
        pytest.param([("make", HERE, None, None)], [NO_SPACE], id="nil-storage"),
        pytest.param([("make", None, "1Gi", None)], [NO_SPACE], id="without a topology"),
    ],
)
def test_capacity(capacities: list[tuple[str, dict[str, str] | None, str, str]], expected: list[str]) -> None:
    made = [capacity(f"c{number}", *one) for number, one in enumerate(capacities)]
    assert reasons(cluster_of(*made, driver=True), *using("make")) == expected
    assert reasons(cluster_of(*made), *using("make")) == [], "the driver does not take part"


ZONE, GKE_ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("zone", "csi_nodes", "expected"),
    [
        pytest.param("us-east-1", [csi_node("n", {}, migrated="kubernetes.io/gce-pd")], [], id="pvc-bound"),
        pytest.param("us-east-1", [csi_node("n", {})], [], id="pvc-bound,csinode-not-migrated"),
        pytest.param(
            "us-east-2",
            [csi_node("n", {}, migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd")],
            [NODE_CONFLICT],
            id="pvc-bound,node-different-zone",
        ),
    ],
)
def test_volumes_of_migrated_plugins(zone: str, csi_nodes: list[dict[str, Any]], expected: list[str]) -> None:
    bound = volume("pv", claim="c", labels={ZONE: "us-east-1"}, gcePersistentDisk={"pdName": "d"})
    at = {"kind": "Node", "metadata": {"name": "n", "labels": {GKE_ZONE: zone}}}
    cluster = StorageCluster([at, *csi_nodes, bound, claim("c", volume="pv")])
    assert list(cluster.reasons(VolumeBinding(), pod("p", *using("c"))).get("n", {})) == expected


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        ({}, {}, True),
        ({"size": "2Gi"}, {}, False),
        ({"size": "1024Mi"}, {}, True),
        ({"size": None}, {"size": "0"}, True),
        ({"modes": ["ReadWriteMany"]}, {}, False),
        ({"modes": ["ReadWriteOnce"]}, {"modes": ["ReadWriteMany", "ReadWriteOnce"]}, True),
        ({"volumeMode": "Block"}, {}, False),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
        ({"volumeMode": "Filesystem"}, {}, True),
        ({"selector": {"matchLabels": {"disk": "ssd"}}}, {}, False),
        ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "ssd"}}, True),
        ({"selector": {}}, {}, True),
        ({"volumeAttributesClassName": "fast"}, {}, False),
        ({}, {"volumeAttributesClassName": "fast"}, False),
        ({"volumeAttributesClassName": "fast"}, {"volumeAttributesClassName": "fast"}, True),
        ({}, {"phase": "Released"}, False),
        ({}, {"phase": "Pending"}, False),
        ({}, {"storage_class": "now"}, False),
        ({}, term(NODE, "node2"), False),
        ({}, term(NODE, "node1", operator="NotIn"), False),
        ({}, {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": []}]}}}, False),
        ({}, {"claimRef": {"namespace": "elsewhere", "name": "c"}}, False),
        ({}, {"claimRef": {"namespace": "default", "name": "c", "uid": "another"}}, False),
        ({}, {"claimRef": {"namespace": "default", "name": "c"}}, True),
    ],
)
def test_what_a_free_volume_must_offer(wanted: dict[str, Any], offered: dict[str, Any], fits: bool) -> None:
    cluster = cluster_of(
        volume("pv", **({"storage_class": "wait"} | offered)), claim("c", storage_class="wait", **wanted)
    )
    assert reasons(cluster, *using("c")) == ([] if fits else [BIND_CONFLICT])


def test_a_pod_with_absurdly_many_claims_is_turned_down_at_once() -> None:
    cluster = cluster_of(*VOLUMES.values())
    assert reasons(cluster, *using(*["make"] * 128)) == []
    assert reasons(cluster, *using(*["make"] * 129)) == ["pod has more than 128 unbound PersistentVolumeClaims"]
    assert reasons(cluster, *using(*["bound"] * 5000)) == []


def test_a_volume_that_is_being_deleted_is_not_free() -> None:
    going = volume("pv", storage_class="wait")
    cluster = cluster_of(going, claim("c", storage_class="wait"))
    assert reasons(cluster, *using("c")) == []
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.put(going)
    assert reasons(cluster, *using("c")) == [BIND_CONFLICT]


def test_the_beta_annotation_names_the_class_before_the_field() -> None:
    beta = {"volume.beta.kubernetes.io/storage-class": "wait"}
    free = volume("pv", storage_class="now")
    free["metadata"]["annotations"] = beta
    cluster = cluster_of(free, claim("c", storage_class="now", annotations=beta))
    assert reasons(cluster, *using("c")) == []


def test_the_smaller_claim_takes_the_smaller_volume_on_each_node() -> None:
    """Three claims of three sizes; node1 has just the right volumes, node2 one too few of the larger."""
    sizes = {"node1": ("1Gi", "2Gi", "3Gi"), "node2": ("1Gi", "2Gi", "2Gi")}
    volumes = [
        volume(f"{at}-{number}", size, storage_class="wait", **term(NODE, at))
        for at, of_node in sizes.items()
        for number, size in enumerate(of_node)
    ]
    claims = [claim(f"c{size}", f"{size}Gi", storage_class="wait") for size in (3, 1, 2)]
    cluster = cluster_of(*volumes, *claims)
    found = cluster.reasons(VolumeBinding(), pod("p", *using("c3", "c1", "c2")))
    assert found == {"node2": {BIND_CONFLICT: False}}
    cluster.put(volume("for-all", "9Gi", storage_class="wait"))
    assert cluster.reasons(VolumeBinding(), pod("p", *using("c3", "c1", "c2"))) == {}
