"""The scorer as an operator runs it: once it is ready it follows what happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from testing.processes.scenery import N_NODES, N_PODS, USED_SHARE, Scenery
from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.servers.cluster_objects import ClusterWriter, running
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.processes.conftest import Started


def _row(scorer: ScorerProcess, name: str) -> dict[str, Any]:
    return next(one for one in scorer.get("/v1/nodes")["nodes"] if one["name"] == name)


def _left(scorer: ScorerProcess, name: str, resource: str = "cpu") -> float:
    body = scorer.get("/v1/virtual-available")
    return float(body["available"][body["nodes"].index(name)][body["resources"].index(resource)])


def _becomes(read: Callable[[], float], value: float) -> bool:
    return eventually(lambda: read() == pytest.approx(value, abs=1e-4))


def test_a_pod_is_seen_from_its_creation_to_its_end(
    start: Started, cluster: Scenery, writer: ClusterWriter, prometheus: PrometheusServer
) -> None:
    # Usage may be a minute old before it counts as missing: a busy machine asks for it late.
    scorer = start("--prometheus", prometheus.url, settings=settings_of(ladder={"fresh_usage": "60s"}))
    name = cluster.nodes[0]
    assert eventually(lambda: scorer.get("/v1/status")["level"] == 0)
    status = scorer.get("/v1/status")
    assert (status["nodes"], status["pods"], status["measured_nodes"]) == (N_NODES, N_PODS, N_NODES)
    capacity = float(cluster.truth.model.node_capacity[0, 0])
    assert _left(scorer, name) == pytest.approx(capacity * (1 - USED_SHARE), rel=1e-5)

    pods = _row(scorer, name)["pods"]
    charge = {"forecast-scheduler.io/virtual-request": json.dumps({"cpu": "1500m"})}
    made = writer.create(cluster.pod("follow-1", annotations=charge))
    reference = {"namespace": made["metadata"]["namespace"], "name": "follow-1"}
    assert eventually(lambda: scorer.http.post("/v1/scores", json={"pod": reference}).status_code == 200)
    before = scorer.post("/v1/scores", {"pod": reference})["scores"]
    assert set(before) == set(cluster.nodes) and len(set(before.values())) > 1

    explained = scorer.post("/v1/explain", {"pod": reference, "top": 3})
    assert explained["service"] == str(cluster.truth.model.services[0]) and explained["service_known"]
    assert [one["node"] for one in explained["nodes"]] == sorted(before, key=lambda n: -before[n])[:3]
    best = explained["nodes"][0]
    # In shares: what the pod declares may make another resource the fullest.
    assert best["peak_with"]["share"] >= best["peak_before"]["share"]

    left = _left(scorer, name)
    writer.bind("follow-1", name, namespace=reference["namespace"])
    assert eventually(lambda: _row(scorer, name)["pods"] == pods + 1)
    assert _becomes(lambda: _left(scorer, name), left - 1.5)
    after = scorer.post("/v1/scores", {"pod": cluster.pod("another", annotations=charge)})["scores"]
    assert after[name] < before[name]

    writer.patch_status(made, running())  # long ago: every metric has seen it
    assert _becomes(lambda: _left(scorer, name), left)
    writer.delete(made)
    assert eventually(lambda: _row(scorer, name)["pods"] == pods)
    assert scorer.http.post("/v1/scores", json={"pod": reference}).status_code == 422

    check = scorer.get("/v1/self-check")
    assert check["sound"], check["drift"]
    # Right after its start Prometheus has evaluated no rule yet, and knows no node.
    assert [line for line in scorer.complaints if "usage" not in line] == []
