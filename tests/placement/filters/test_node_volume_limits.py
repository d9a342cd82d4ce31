"""Cases of pkg/scheduler/framework/plugins/nodevolumelimits/csi_test.go, under their names there."""

from __future__ import annotations

from typing import Any

import pytest

from placement.filters.node_volume_limits import NodeVolumeLimits
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import claim, csi_driver, csi_node, node, pod, storage_class, using, volume

EBS, GCE, IN_TREE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "kubernetes.io/aws-ebs"

FULL = {"n": {"node(s) exceed max volume count": True}}

INLINE = {"awsElasticBlockStore": {"volumeID": "aws-inline1"}}
PODS: dict[str, list[dict[str, Any]]] = {
    "running": using("csi-ebs.csi.aws.com-3"),
    "pending": using("csi-4"),
    "unbound 2": using("csi-4"),
    "missing PV": using("csi-6"),
    "no SC": using("csi-5"),
    "gce two": using("csi-pd.csi.storage.gke.io-1", "csi-pd.csi.storage.gke.io-2"),
    "csi one": using("csi-ebs.csi.aws.com-0"),
    "csi two": using("csi-ebs.csi.aws.com-1", "csi-ebs.csi.aws.com-2"),
    "in-tree one": using("csi-kubernetes.io/aws-ebs-0"),
    "in-tree two": using("csi-kubernetes.io/aws-ebs-1", "csi-kubernetes.io/aws-ebs-2"),
    "in-tree inline": [INLINE],
    "in-tree inline as csi": [{"awsElasticBlockStore": {"volumeID": "csi-ebs.csi.aws.com-1"}}],
    "hostpath": using("csi-hostpath"),
    "only config": [{"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}],
    "config and claim": [{"configMap": {"name": "c"}}, *using("csi-ebs.csi.aws.com-0")],
    "config and inline": [{"secret": {"secretName": "s"}}, INLINE],
    "ephemeral": [{"name": "xyz", "ephemeral": {}}],
}

CASES: list[tuple[str, str, list[str], int | None, int, dict[str, dict[str, bool]]]] = [
    # name, new pod, pods of the node, limit (None = the driver states none), attachments, expected
    ("should count VolumeAttachments towards volume limit when no pods exist", "csi one", [], 2, 2, FULL),
    ("should schedule pod when VolumeAttachments count does not exceed limit", "csi one", [], 2, 1, {}),
    ("fits when node volume limit >= new pods CSI volume", "csi one", ["running", "csi two"], 4, 0, {}),
    ("doesn't when node volume limit <= pods CSI volume", "csi one", ["running", "csi two"], 2, 0, FULL),
    ("should when driver does not support volume limits", "csi one", ["running", "csi two"], None, 0, {}),
    ("count pending PVCs towards volume limit <= pods CSI volume", "csi one", ["pending", "csi two"], 2, 0, FULL),
    ("count multiple pending pvcs once", "csi one", ["pending", "unbound 2", "csi two"], 4, 0, {}),
    ("should count PVCs with invalid PV name but valid SC", "csi one", ["missing PV", "csi two"], 2, 0, FULL),
    ("don't count pvcs with missing SC towards volume limit", "csi one", ["running", "no SC"], 2, 0, {}),
    ("count pvcs with the same type towards volume limit", "csi one", ["gce two", "csi two"], 2, 0, FULL),
    ("don't count pvcs with different type towards volume limit", "gce two", ["csi two", "running"], 2, 0, {}),
    ("should count in-tree volumes if migration is enabled", "in-tree one", ["in-tree two"], 2, 0, FULL),
    ("should not limit pod if volume used does not report limits", "in-tree one", ["in-tree two"], None, 0, {}),
    ("should not count non-migratable in-tree volumes", "hostpath", ["csi two"], 2, 0, {}),
    ("should count in-tree inline volumes", "in-tree inline", ["in-tree two"], 2, 0, FULL),
    ("should count in-tree and csi volumes (in-tree)", "in-tree one", ["csi two"], 2, 0, FULL),
    ("should count in-tree, inline and csi volumes", "in-tree inline", ["csi two", "in-tree one"], 3, 0, FULL),
    ("the same volume is not counted twice", "in-tree inline as csi", ["csi two", "in-tree one"], 3, 0, {}),
    ("should count in-tree and csi volumes (csi)", "csi one", ["in-tree two"], 2, 0, FULL),
    ("skip Filter when the pod only uses secrets and configmaps", "only config", ["csi two"], 2, 0, {}),
    ("don't skip Filter when the pod has pvcs", "config and claim", ["csi two"], 2, 0, FULL),
    ("don't skip Filter when the pod has inline volumes", "config and inline", ["in-tree two"], 2, 0, FULL),
    ("a limit of none at all", "csi one", [], 0, 0, FULL),
    ("volumes that are there need no room", "csi two", ["csi two", "running"], 2, 0, {}),
    ("an attachment of a pod's volume counts once", "csi one", ["csi two"], 3, 2, {}),
    ("an attachment alone does not make a volume known", "csi two", [], 3, 2, FULL),
]


def cluster_of(pods: list[str], limit: int | None, attachments: int, provisioner: str = EBS) -> StorageCluster:
    drivers = (EBS, GCE, IN_TREE)
    made: list[dict[str, Any]] = [
        node("n"),
        node("other"),
        csi_node("n", dict.fromkeys((EBS, GCE), limit), migrated=IN_TREE),
        storage_class("csi-sc", provisioner),
        claim("csi-4", storage_class="csi-sc"),
        claim("csi-5"),
        claim("csi-6", storage_class="csi-sc", volume="missing-in-action"),
        claim("csi-hostpath", volume="csi-hostpath"),
        volume("csi-hostpath", hostPath={"path": "/tmp"}),
    ]
    for driver in drivers:
        for number in range(4):
            name = f"csi-{driver}-{number}".replace("/", "-")
            source: dict[str, Any] = {"csi": {"driver": driver, "volumeHandle": name}}
            if driver == IN_TREE:
                source = {"awsElasticBlockStore": {"volumeID": name}}
            made += [volume(name, **source), claim(name, volume=name)]
    for number in range(1, attachments + 1):
        spec = {"attacher": EBS, "nodeName": "n", "source": {"persistentVolumeName": f"csi-{EBS}-{number}"}}
        made.append({"kind": "VolumeAttachment", "metadata": {"name": f"a{number}"}, "spec": spec})
    for name in pods:
        made.append(pod(name.replace(" ", "-"), *volumes_of(name), node="n"))
    return StorageCluster(made)


def volumes_of(name: str) -> list[dict[str, Any]]:
    return [
        using(one["persistentVolumeClaim"]["claimName"].replace("/", "-"))[0] if "persistentVolumeClaim" in one else one
        for one in PODS[name]
    ]


@pytest.mark.parametrize(
    ("new", "pods", "limit", "attachments", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_volumes_of_a_driver(
    new: str, pods: list[str], limit: int | None, attachments: int, expected: dict[str, dict[str, bool]]
) -> None:
    cluster = cluster_of(pods, limit, attachments)
    assert cluster.reasons(NodeVolumeLimits(), pod("new", *volumes_of(new))) == expected


def test_volumes_to_be_made_by_a_migrated_provisioner_count_for_its_driver() -> None:
    cluster = cluster_of(["in-tree two"], 2, 0, provisioner=IN_TREE)
    assert cluster.reasons(NodeVolumeLimits(), pod("new", *volumes_of("pending"))) == FULL


@pytest.mark.parametrize(
    ("owner", "pods", "limit", "reason"),
    [
        (None, [], None, 'looking up PVC test/abc-xyz: persistentvolumeclaim "abc-xyz" not found'),
        ("another", [], None, "PVC test/abc-xyz was not created for pod test/abc (pod is not owner)"),
        ("12345", [], None, ""),
        ("12345", ["running", "csi two"], 2, "node(s) exceed max volume count"),
        ("12345", ["running", "csi two"], 4, ""),
    ],
)
def test_claims_of_ephemeral_volumes(owner: str | None, pods: list[str], limit: int | None, reason: str) -> None:
    cluster = cluster_of(pods, limit, 0)
    if owner is not None:
        cluster.put(claim("abc-xyz", storage_class="csi-sc", namespace="test", owner=owner))
    new = pod("abc", *PODS["ephemeral"], namespace="test", uid="12345")
    assert cluster.reasons(NodeVolumeLimits(), new).get("n", {}) == ({reason: "exceed" in reason} if reason else {})


@pytest.mark.parametrize(
    ("new", "has_csi_node", "is_required", "missing"),
    [
        ("csi one", True, True, GCE),
        ("csi one", True, False, GCE),
        ("csi one", False, True, EBS),
        ("csi one", True, True, EBS),
        ("in-tree one", False, True, EBS),  # not translated where there is no CSINode
        ("in-tree one", True, True, EBS),
        ("in-tree inline", True, True, EBS),
        ("in-tree inline", False, True, EBS),
    ],
)
def test_a_driver_may_keep_pods_from_nodes_without_it(
    new: str, has_csi_node: bool, is_required: bool, missing: str
) -> None:
    """missing: the driver that the CSIDriver is about, which the CSINode lacks."""
    cluster = cluster_of([], None, 0)
    of_node = csi_node("n", {one: 9 for one in (EBS, GCE) if one != missing}, migrated=IN_TREE)
    if has_csi_node:
        cluster.put(of_node)
    else:
        cluster.delete(of_node)
    cluster.put(csi_driver(missing, is_required=is_required))
    is_rejected = missing == EBS and (has_csi_node or new == "csi one")
    expected = {f"{EBS} CSI driver is not installed on the node": True} if is_rejected else {}
    pending = pod("new", *volumes_of(new))
    assert cluster.reasons(NodeVolumeLimits(), pending).get("n", {}) == expected
    cluster.put(csi_node("n", {EBS: None, GCE: None}, migrated=IN_TREE))
    assert "n" not in cluster.reasons(NodeVolumeLimits(), pending)


@pytest.mark.parametrize("limits", [{}, {GCE: 0}])
def test_of_several_drivers_one_that_is_missing_is_told_and_no_limit_beside_it(limits: dict[str, int]) -> None:
    cluster = cluster_of([], 0, 0)
    for one in (csi_driver(EBS, is_required=True), csi_driver(GCE, is_required=True), csi_node("n", limits)):
        cluster.put(one)
    found = cluster.reasons(NodeVolumeLimits(), pod("new", *volumes_of("csi one"), *volumes_of("gce two")))
    assert found["n"] == {f"{EBS} CSI driver is not installed on the node": True}
