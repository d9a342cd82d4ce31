"""What RBAC cannot refuse to loops that share nodes their policies do, on a real API server with their account's token:
of a node all but the shard, of a pod all metadata but one annotation, the Leases of other parts."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import lease_body
from scheduler.loop_settings import ShardOptions
from scheduler.shards.node_shards import HANDED_OVER, SHARD_LABEL, HandedOver, LoanRequest, handing_over, wanting
from scheduler.shards.passing_on import PASSED_ON
from scheduler.shards.shard_leases import LEASES_LABEL, replica_name, shard_names
from testing.servers.cluster_objects import node, pod
from testing.servers.shipped_rights import NAMESPACE
from tests.deploy.conftest import JSON, Policed

NODE: Final = "/api/v1/nodes/a"
STATUS: Final = "/api/v1/namespaces/default/pods/waits/status"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
LEASE: Final = LeaseOptions()


@pytest.fixture(scope="module")
def world(policed: Policed) -> Policed:
    """With a node and a pod that waits."""
    made = node("a")
    made["metadata"]["annotations"] = {"kept": "yes"}
    policed.writer.create(made)
    policed.writer.create(pod("waits", labels={"app": "t"}, annotations={"kept": "yes"}))
    return policed


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
def test_of_a_node_nothing_changes_but_its_shard(attack: str, world: Policed) -> None:
    assert world.refuses("schedule", NODE, NODE_ATTACKS[attack])


def test_a_node_is_asked_for_and_handed_over(world: Policed) -> None:
    made = world.write("schedule", NODE, json.loads(wanting(LoanRequest(3, 1.7e9))))
    record = HandedOver(1, 3, "0-00000000", home=1)
    world.write("schedule", NODE, json.loads(handing_over(made["metadata"]["resourceVersion"], record)))
    metadata = world.admin.send("GET", NODE)["metadata"]
    assert metadata["labels"][SHARD_LABEL] == "3" and set(metadata["annotations"]) == {"kept", HANDED_OVER}


STATUS_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "labels": {"metadata": {"labels": {"app": "others"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "an annotation": {"metadata": {"annotations": {"forecast-scheduler.io/advice": "{}"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
}


@pytest.mark.parametrize("attack", STATUS_ATTACKS)
def test_of_the_metadata_of_pods_one_annotation_changes(attack: str, world: Policed) -> None:
    assert world.refuses("schedule", STATUS, STATUS_ATTACKS[attack])
    world.write("schedule", STATUS, {"metadata": {"annotations": {PASSED_ON: "1@3"}}})


def test_leases_of_shards_and_replicas_come_and_go(world: Policed) -> None:
    names = [LEASE.name, replica_name(LEASE, "me"), *shard_names(LEASE, ShardOptions(count=256))[::85]]
    for name in names:
        world.write("schedule", LEASES, _lease(name), JSON, "POST")
    listed = world.by("schedule").send("GET", f"{LEASES}?labelSelector={LEASES_LABEL}%3D{LEASE.name}")["items"]
    assert {one["metadata"]["name"] for one in listed} == set(names)
    for one in listed:
        path = f"{LEASES}/{one['metadata']['name']}"
        world.write("schedule", path, one, JSON, "PUT")
        world.write("schedule", path, None, method="DELETE")


@pytest.mark.parametrize("name", ["forecast-scheduler-rebalancer", "forecast-scheduler-shard-x", "other-shard-1"])
def test_leases_of_other_parts_are_theirs(name: str, world: Policed) -> None:
    assert world.refuses("schedule", LEASES, _lease(name), JSON, "POST")
    made = world.create(LEASES, _lease(name))
    assert world.refuses("schedule", f"{LEASES}/{name}", made, JSON, "PUT")
    assert world.refuses("schedule", f"{LEASES}/{name}", None, JSON, "DELETE")
