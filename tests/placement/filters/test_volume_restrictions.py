"""Cases of pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions_test.go, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from placement.filters.volume_restrictions import VolumeRestrictions
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import claim, node, pod, using

DISK = {"node-1": {"node(s) had no available disk": True}}
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def gce(name: str, **more: Any) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name} | more}


def aws(name: str, **more: Any) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name} | more}


def rbd(*monitors: str, image: str = "bar", pool: str = "foo", **more: Any) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool} | more}


def iscsi(iqn: str, **more: Any) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "127.0.0.1:3260", "iqn": iqn, "lun": 0} | more}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflicts"),
    [
        (gce("foo"), gce("foo"), True),
        (gce("bar"), gce("foo"), False),
        (gce("foo", readOnly=True), gce("foo"), True),
        (gce("foo"), gce("foo", readOnly=True), True),
        (gce("foo", readOnly=True), gce("foo", readOnly=True), False),
        (aws("foo"), aws("foo"), True),
        (aws("bar"), aws("foo"), False),
        (aws("foo", readOnly=True), aws("foo", readOnly=True), True),
        (aws("foo"), gce("foo"), False),
        (rbd("a", "b"), rbd("a", "b"), True),
        (rbd("c", "d"), rbd("a", "b"), False),
        (rbd("b", "c"), rbd("a", "b"), True),
        (rbd("a", pool="other"), rbd("a"), False),
        (rbd("a", image="other"), rbd("a"), False),
        (rbd("a", readOnly=True), rbd("a", readOnly=True), False),
        (rbd("a", readOnly=True), rbd("a"), True),
        (rbd(), rbd(), False),
        (iscsi("iqn.2016-12.server:storage.target01"), iscsi("iqn.2016-12.server:storage.target01"), True),
        (iscsi("iqn.2016-12.server:storage.target01"), iscsi("iqn.2017-12.server:storage.target01"), False),
        (iscsi("i", lun=1), iscsi("i", lun=2), True),
        (iscsi("i", readOnly=True), iscsi("i", readOnly=True), False),
        ({"cinder": {"volumeID": "v"}}, {"cinder": {"volumeID": "v"}}, False),
        ({"emptyDir": {}}, gce("foo"), False),
    ],
)
def test_disks_of_another_pod_of_the_node(mine: dict[str, Any], theirs: dict[str, Any], conflicts: bool) -> None:
    other = pod("other", theirs, node="node-1")
    cluster = StorageCluster([node("node-1"), node("node-2"), other])
    assert cluster.reasons(VolumeRestrictions(), pod("mine", mine)) == (DISK if conflicts else {})
    cluster.delete(other)
    assert cluster.reasons(VolumeRestrictions(), pod("mine", mine)) == {}


RWOP: dict[str, Any] = {"modes": ["ReadWriteOncePod"]}
CLAIMS = [
    claim("claim-with-rwop-1", **RWOP),
    claim("claim-with-rwop-2", **RWOP),
    claim("claim-with-rwx", modes=["ReadWriteMany"]),
    claim("claim-with-rwop-1", namespace="elsewhere", **RWOP),
]


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [
        ([], [], ""),
        (["missing"], [], 'persistentvolumeclaim "missing" not found'),
        (["claim-with-rwop-1"], ["claim-with-rwx"], ""),
        (["claim-with-rwop-1"], ["claim-with-rwop-1", "claim-with-rwx"], IN_USE),
        (["claim-with-rwop-1", "claim-with-rwop-2"], ["claim-with-rwop-1", "claim-with-rwop-2"], IN_USE),
        (["claim-with-rwx"], ["claim-with-rwx"], ""),
        (["claim-with-rwop-2"], ["claim-with-rwop-1"], ""),
    ],
)
def test_claims_that_one_pod_may_have(mine: list[str], theirs: list[str], reason: str) -> None:
    cluster = StorageCluster([node("node-1"), node("node-2"), *CLAIMS, pod("other", *using(*theirs), node="node-1")])
    found = cluster.reasons(VolumeRestrictions(), pod("mine", *using(*mine)))
    # Evicting the other pod would help, on whichever node it is.
    assert found == ({name: {reason: reason == IN_USE} for name in ("node-1", "node-2")} if reason else {})


def test_a_pod_that_had_the_claim_made_for_it_does_not_name_it() -> None:
    """Upstream counts no claims of ephemeral volumes, so that another pod that names one is not kept off here."""
    made = claim("owner-v0", owner="uid-owner", **RWOP)
    owner = pod("owner", {"ephemeral": {}}, node="node-1")
    cluster = StorageCluster([node("node-1"), made, owner])
    mine = pod("mine", *using("owner-v0"))
    assert cluster.reasons(VolumeRestrictions(), mine) == {}
    cluster.put(pod("other", *using("owner-v0"), node="node-1"))
    assert cluster.reasons(VolumeRestrictions(), mine) == {"node-1": {IN_USE: True}}


def test_only_pods_of_the_namespace_on_nodes_that_exist_use_a_claim() -> None:
    cluster = StorageCluster([node("node-1"), *CLAIMS])
    mine = pod("mine", *using("claim-with-rwop-1"))
    cluster.put(pod("elsewhere", *using("claim-with-rwop-1"), node="node-1", namespace="elsewhere"))
    cluster.put(pod("waiting", *using("claim-with-rwop-1")))
    cluster.put(pod("left", *using("claim-with-rwop-1"), node="gone"))
    assert cluster.reasons(VolumeRestrictions(), mine) == {}
    cluster.put(node("gone"))
    assert cluster.reasons(VolumeRestrictions(), mine) == {"node-1": {IN_USE: True}, "gone": {IN_USE: True}}
