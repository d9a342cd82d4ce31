"""The API server, Prometheus or a model fails: scores go on being given, it is said so, and in the end all is right."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from testing.clusters.large_cluster import LargeCluster, large_cluster
from testing.processes.command import command
from testing.processes.scenery import N_NODES, N_PODS, N_SERVICES, Scenery, publish
from testing.processes.scorer_process import Asker, ScorerProcess
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.processes.conftest import Started


def _status(scorer: ScorerProcess) -> dict[str, Any]:
    return scorer.get("/v1/status")


def _equals_server(scorer: ScorerProcess, writer: ClusterWriter) -> bool:
    pods, nodes = writer.list_all("pods"), writer.list_all("nodes")
    on = Counter(one["spec"].get("nodeName", "") for one in pods)
    told = {one["name"]: one["pods"] for one in scorer.get("/v1/nodes")["nodes"]}
    wanted = {one["metadata"]["name"]: on[one["metadata"]["name"]] for one in nodes}
    return told == wanted and _status(scorer)["pods"] == len(pods)


def test_a_killed_api_server_holds_up_no_score(
    start: Started, plane: ControlPlane, cluster: Scenery, writer: ClusterWriter
) -> None:
    scorer = start()
    made = writer.create_many(cluster.pod(f"before-{i}", service=i, node=cluster.nodes[i]) for i in range(10))
    assert eventually(lambda: _status(scorer)["pods"] == N_PODS + 10)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        plane.api_server.kill()
        assert eventually(lambda: "refused" in _status(scorer)["sources"]["pods"])
        assert _status(scorer)["pods"] == N_PODS + 10
        plane.api_server.start()
        with ClusterWriter(plane) as restarted:
            restarted.delete_many(made)
            extra = restarted.create(cluster.pod("after", node=cluster.nodes[3]))
            assert eventually(lambda: _equals_server(scorer, restarted))
            restarted.delete(extra)
            assert eventually(lambda: _equals_server(scorer, restarted))
    assert asker.failures == []
    assert len(asker.answers) > 20
    assert eventually(lambda: set(_status(scorer)["sources"].values()) == {"watched"})
    check = scorer.get("/v1/self-check")
    assert check["sound"], check["drift"]
    assert len(scorer.complaints) <= 20 and "Traceback" not in scorer.log, scorer.log


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        pytest.param([], "forbids to list nodes", id="no rights"),
        pytest.param(
            [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
            "forbids to list pods",
            id="none on pods",
        ),
    ],
)
def test_missing_rights_end_it_at_once_with_the_way_out(
    rules: list[Any], message: str, plane: ControlPlane, writer: ClusterWriter, models: Path
) -> None:
    of_rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "scorer"}}
    group = "rbac.authorization.k8s.io"
    role = writer.create(of_rbac | {"kind": "ClusterRole", "rules": rules})
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "scorer"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "nobody"}],
    }
    binding = writer.create(of_rbac | {"kind": "ClusterRoleBinding"} | bound)
    try:
        kubeconfig = plane.write_kubeconfig("nobody", plane.powerless_token)
        ended = command("scorer", "--port", 0, "--kubeconfig", kubeconfig, "--models", models)
    finally:
        writer.delete(binding)
        writer.delete(role)
    assert ended.returncode == 2 and "scorer:" not in ended.stdout
    assert message in ended.stderr and "ClusterRole" in ended.stderr and ended.stderr.count("\n") == 1


def _check_fallen(scorer: ScorerProcess, cluster: Scenery) -> None:
    """One step down, said so everywhere."""
    # Nodes are measured in several requests: the level falls when half of them are lost, so wait for the last, too.
    unmeasured = f"usage is measured on 0 of {N_NODES} nodes"
    assert eventually(lambda: any(one.startswith(unmeasured) for one in _status(scorer)["reasons"]))
    body = {"pod": cluster.pod("any"), "nodes": cluster.nodes[:5]}
    scored = scorer.post("/v1/scores", body)
    assert scored["level"] == 1 and len(set(scored["scores"].values())) > 1
    assert any(one.startswith(unmeasured) for one in scored["reasons"])
    assert {one["level"] for one in scorer.post("/v1/explain", body)["nodes"]} == {1}
    available = scorer.get("/v1/virtual-available")
    assert {one for row in available["available"] for one in row} == {None}


def test_a_prometheus_that_is_away_is_gone_without_and_found_again(
    start: Started, cluster: Scenery, prometheus: PrometheusServer
) -> None:
    prometheus.stop()
    try:
        scorer = start("--prometheus", prometheus.url)
        _check_fallen(scorer, cluster)
        assert _status(scorer)["ready"] and _status(scorer)["metrics_age_seconds"] is None
    finally:
        prometheus.start()
    assert eventually(lambda: _status(scorer)["level"] == 0)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        prometheus.stop()
        try:
            _check_fallen(scorer, cluster)
            assert "cannot be reached" in _status(scorer)["sources"]["usage"]
        finally:
            prometheus.start()
        assert eventually(lambda: _status(scorer)["level"] == 0)
        assert _status(scorer)["sources"]["usage"] == "measured"
    assert asker.failures == []
    assert {answer["level"] for answer in asker.answers} == {0, 1}
    # Each thing is said once, not at every attempt.
    said = [line.partition(": ")[2].partition(" reason=")[0] for line in scorer.complaints]
    assert said == ["usage cannot be measured", "usage is measured again"] * 2


def _version(scorer: ScorerProcess) -> str | None:
    model = _status(scorer)["model"]
    return None if model is None else str(model["version"])


def _other_truth(cluster: Scenery, seed: int = 1) -> LargeCluster:
    return large_cluster(N_NODES, N_PODS, N_SERVICES, first_day=cluster.truth.model.first_day, seed=seed)


def test_a_damaged_model_is_refused_and_the_next_one_used_without_a_dropped_request(
    start: Started, cluster: Scenery, models: Path, tmp_path: Path
) -> None:
    scorer = start()
    good = _version(scorer)
    # Damaged elsewhere and moved into place at once: the scorer looks every second.
    aside = tmp_path / "aside"
    shutil.copytree(models, aside)
    bad = publish(aside, _other_truth(cluster))
    array = aside / bad / "usage_dated.npy"
    content = bytearray(array.read_bytes())
    content[-100] ^= 1
    array.write_bytes(content)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        shutil.copytree(aside / bad, models / bad)
        os.replace(shutil.copy(aside / "latest.json", models / "latest.new"), models / "latest.json")
        assert eventually(lambda: scorer.metric("forecast_model_refused") == 1)
        status = _status(scorer)
        assert status["model"]["version"] == good and status["refused_model"]
        assert any("newer model is refused" in reason for reason in status["reasons"])
        third = publish(models, _other_truth(cluster, seed=2))
        assert eventually(lambda: _version(scorer) == third)
        assert eventually(lambda: scorer.metric("forecast_model_refused") == 0)
        assert eventually(lambda: asker.answers[-1]["model"] == third)
    assert asker.failures == []
    scores = {answer["model"]: answer["scores"] for answer in asker.answers}
    assert set(scores) == {good, third} and scores[good] != scores[third]
    assert scorer.get("/v1/self-check")["sound"]
    assert len(scorer.complaints) == 1 and "model refused" in scorer.complaints[0], scorer.log
