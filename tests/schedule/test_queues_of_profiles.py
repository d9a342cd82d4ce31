"""Queues of services and GPU pods on a real API server: who gets the room, and what the process says of it."""

from __future__ import annotations

from collections import Counter

import pytest

from testing.clusters.gpu_nodes import gpu_node, gpu_pod
from testing.clusters.own_nodes import LONG, our_node, our_pod
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from tests.schedule.conftest import Started

TEAMS = ("team-a", "team-b")
FAIR = [{"name": name, "profiles": [name], "order": "drf", "most_per_turn": 1} for name in ("online", "gpu")]


@pytest.fixture(scope="module")
def teams(module_plane: ControlPlane) -> None:
    with ClusterWriter(module_plane) as writer:
        for name in TEAMS:
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _placed(writer: ClusterWriter, prefix: str) -> Counter[str]:
    """Pods with a node by namespace."""
    pods = [one["metadata"] for one in writer.list_all("pods") if one["spec"].get("nodeName")]
    return Counter(one["namespace"] for one in pods if one["name"].startswith(prefix))


def _makes(writer: ClusterWriter) -> None:
    """The first team's pods are there first, and would fill the nodes."""
    writer.create_many([our_node("cores", cpu=8), gpu_node("cards", 4, cpu=1)])
    for team in TEAMS:
        services: list[Manifest] = [our_pod(f"service-{i}", cpu="2", namespace=team) for i in range(6)]
        writer.create_many(services)
        writer.create_many(gpu_pod(f"cards-{i}", gpus=1, namespace=team) for i in range(6))


def _settles(writer: ClusterWriter, process: ScorerProcess, prefix: str) -> Counter[str]:
    assert eventually(lambda: _placed(writer, prefix).total() >= 4, LONG), process.log[-3000:]
    return _placed(writer, prefix)


@pytest.mark.usefixtures("teams")
def test_owners_share_cores_and_cards(writer: ClusterWriter, start: Started) -> None:
    _makes(writer)
    process = start(profiles=["online", "gpu"], preemption={"enabled": False}, queues=FAIR)
    for prefix in ("cards", "service"):
        assert _settles(writer, process, prefix) == Counter(dict.fromkeys(TEAMS, 2))
    told = process.get("/v1/queue")
    found = {(pod["name"].partition("-")[0], pod["queue"]) for pod in told["pods"]}
    assert found == {
        (name, f"{queue}/{team}") for name, queue in (("cards", "gpu"), ("service", "online")) for team in TEAMS
    }
    owners = {(one["queue"], one["owner"]): (one["running"], one["share"]) for one in told["queues"]}
    assert {owners["gpu", team] for team in TEAMS} == {(2, 0.5)}, "of four cards"
    assert process.metric("forecast_queue_owner_pods") == 8
