"""What RBAC cannot refuse to loops that share nodes their policies do, on a real API server with their account's token:
of a node all but the shard, of a pod all metadata but one annotation, the Leases of other parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from kube.leader_election.options import LeaseOptions
from kube.leader_election.record import lease_body
from scheduler.shards.lease_names import LEASES_LABEL, replica_name, shard_names
from scheduler.shards.node_shards import HANDED_OVER, SHARD_LABEL, HandedOver, Wanted, handing_over, wanting
from scheduler.shards.options import ShardOptions
from scheduler.shards.passed_on import PASSED_ON
from testing.processes.scorer_process import eventually
from testing.servers.applying import Applier, Manifest, NotApplied
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built_from
from tests.deploy.rights import NAMESPACE, Account, Installed, is_refused

NODE: Final = "/api/v1/nodes/a"
STATUS: Final = "/api/v1/namespaces/default/pods/waits/status"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
LEASE: Final = LeaseOptions()
PASSED: Final = {"metadata": {"annotations": {PASSED_ON: "1@3"}}}


@dataclass(frozen=True)
class World:
    """admin may everything, the loops what is shipped."""

    admin: Applier
    loops: Applier
    manifests: Sequence[Manifest]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("policies")
    manifests = built_from(directory / "built", resources=["overlays/own-loops"], components=["components/shards"])
    with control_plane() as plane, Applier(plane) as admin, ClusterWriter(plane) as writer:
        installed = Installed(plane, admin, Audit(directory, []), manifests)
        token = installed.token("forecast-scheduler-schedule")
        made = node("a")
        made["metadata"]["annotations"] = {"kept": "yes"}
        writer.create(made)
        waits = pod("waits", labels={"app": "t"}, annotations={"kept": "yes"})
        writer.create(waits)
        with Applier(Account(plane.url, token, plane.ca_file)) as loops:
            # A policy counts a moment after it was written.
            for path, body in (
                (NODE, {"spec": {"unschedulable": True}}),
                (STATUS, {"metadata": {"labels": {"a": "b"}}}),
            ):
                assert eventually(partial(_refused, loops, f"{path}?dryRun=All", body), 30)
            assert eventually(lambda: _lease_refused(loops, "forecast-scheduler-rebalancer", dry_run=True), 30)
            yield World(admin, loops, manifests)
            writer.delete_many([*writer.list_all("pods"), *writer.list_all("nodes")])


def _refused(by: Applier, path: str, change: Any) -> bool:
    return is_refused(by, path, change, "forecast-scheduler-schedule-")


def _lease_refused(by: Applier, name: str, *, dry_run: bool = False) -> bool:
    try:
        by.send("POST", LEASES + "?dryRun=All" * dry_run, _lease(name), kind="application/json")
    except NotApplied as error:
        if "ValidatingAdmissionPolicy 'forecast-scheduler-schedule-leases" not in error.message:
            raise
        return True
    return False


def _lease(name: str) -> dict[str, Any]:
    labels = {LEASES_LABEL: LEASE.name}
    body = lease_body(NAMESPACE, name, holder="me", seconds=10, now=1.7e9, labels=labels, annotations={"a": "b"})
    made: dict[str, Any] = json.loads(body)
    return made


NODE_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "no more pods": {"spec": {"unschedulable": True}},
    "taints": {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}},
    "labels of others": {"metadata": {"labels": {"pool": "mine"}}},
    "the domain": {"metadata": {"labels": {"forecast-scheduler.io/domain": "mine"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "an annotation": {"metadata": {"annotations": {"forecast-scheduler.io/other": "x"}}},
}


@pytest.mark.parametrize("attack", NODE_ATTACKS)
def test_of_a_node_nothing_changes_but_its_shard(attack: str, world: World) -> None:
    assert _refused(world.loops, NODE, NODE_ATTACKS[attack])


def test_a_node_is_asked_for_and_handed_over(world: World) -> None:
    assert not _refused(world.loops, NODE, json.loads(wanting(Wanted(3, 1.7e9))))
    version = world.loops.send("GET", NODE)["metadata"]["resourceVersion"]
    record = HandedOver(1, 3, "0-00000000", home=1)
    assert not _refused(world.loops, NODE, json.loads(handing_over(version, record)))
    metadata = world.admin.send("GET", NODE)["metadata"]
    assert metadata["labels"][SHARD_LABEL] == "3" and set(metadata["annotations"]) == {"kept", HANDED_OVER}


STATUS_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "labels": {"metadata": {"labels": {"app": "others"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "an annotation": {"metadata": {"annotations": {"forecast-scheduler.io/advice": "{}"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
}


@pytest.mark.parametrize("attack", STATUS_ATTACKS)
def test_of_the_metadata_of_pods_one_annotation_changes(attack: str, world: World) -> None:
    assert _refused(world.loops, STATUS, STATUS_ATTACKS[attack])
    assert not _refused(world.loops, STATUS, PASSED)


def test_leases_of_shards_and_replicas_come_and_go(world: World) -> None:
    names = [LEASE.name, replica_name(LEASE, "me"), *shard_names(LEASE, ShardOptions(count=256))[::85]]
    for name in names:
        assert not _lease_refused(world.loops, name)
    listed = world.loops.send("GET", f"{LEASES}?labelSelector={LEASES_LABEL}%3D{LEASE.name}")["items"]
    assert {one["metadata"]["name"] for one in listed} == set(names)
    for one in listed:
        path = f"{LEASES}/{one['metadata']['name']}"
        world.loops.send("PUT", path, one, kind="application/json")
        world.loops.send("DELETE", path)


@pytest.mark.parametrize("name", ["forecast-scheduler-rebalancer", "forecast-scheduler-shard-x", "other-shard-1"])
def test_leases_of_other_parts_are_theirs(name: str, world: World) -> None:
    assert _lease_refused(world.loops, name)
    made = world.admin.send("POST", LEASES, _lease(name), kind="application/json")
    for method, body in (("PUT", made), ("DELETE", None)):
        with pytest.raises(NotApplied, match="forecast-scheduler-schedule-leases"):
            world.loops.send(method, f"{LEASES}/{name}", body, kind="application/json")
    world.admin.send("DELETE", f"{LEASES}/{name}")


def test_without_the_component_the_loops_may_not_touch_nodes(tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = built_from(tmp_path_factory.mktemp("plain"), resources=["overlays/own-loops"])
    of_nodes = [
        rule["verbs"]
        for one in plain
        if one["kind"] == "ClusterRole" and one["metadata"]["name"].startswith("forecast-scheduler-schedule")
        for rule in one["rules"]
        if "nodes" in rule.get("resources", [])
    ]
    assert of_nodes == [["list", "watch"]]
