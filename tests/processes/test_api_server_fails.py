"""The API server is away, forgets, refuses: scores go on being given, and in the end the tables are as it says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from testing.processes.scenery import N_NODES, N_PODS, Scenery
from testing.processes.scorer_process import ROOT, Asker, ScorerProcess, eventually, settings_of
from testing.servers.cluster_objects import ClusterWriter, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.processes.conftest import Started

MAY_READ = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "scorer"},
    "rules": [
        {"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]}
        for group, resources in (("", ["nodes", "pods"]), ("apps", ["replicasets"]), ("batch", ["jobs"]))
    ],
}
GRANT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "scorer"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scorer"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
}


def _equals_server(scorer: ScorerProcess, writer: ClusterWriter) -> bool:
    pods, nodes = writer.list_all("pods"), writer.list_all("nodes")
    on = Counter(one["spec"].get("nodeName", "") for one in pods)
    told = {one["name"]: one["pods"] for one in scorer.get("/v1/nodes")["nodes"]}
    wanted = {one["metadata"]["name"]: on[one["metadata"]["name"]] for one in nodes}
    return told == wanted and scorer.get("/v1/status")["pods"] == len(pods)


def _lines(scorer: ScorerProcess, *, at_most: int) -> list[str]:
    lines = scorer.complaints
    assert len(lines) <= at_most, scorer.log
    assert not any("Traceback" in line for line in lines), scorer.log
    return lines


def test_a_killed_api_server_holds_up_no_score(
    start: Started, plane: ControlPlane, cluster: Scenery, writer: ClusterWriter
) -> None:
    scorer = start()
    made = writer.create_many(cluster.pod(f"before-{i}", service=i, node=cluster.nodes[i]) for i in range(10))
    assert eventually(lambda: scorer.get("/v1/status")["pods"] == N_PODS + 10)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        plane.api_server.kill()
        assert eventually(lambda: "refused" in scorer.get("/v1/status")["sources"]["pods"], 10)
        assert scorer.get("/v1/status")["pods"] == N_PODS + 10
        plane.api_server.start()
        with ClusterWriter(plane) as restarted:
            restarted.delete_many(made)
            extra = restarted.create(cluster.pod("after", node=cluster.nodes[3]))
            assert eventually(lambda: _equals_server(scorer, restarted), 30)
            restarted.delete(extra)
            assert eventually(lambda: _equals_server(scorer, restarted))
    assert asker.failures == []
    assert len(asker.answers) > 20
    assert eventually(lambda: set(scorer.get("/v1/status")["sources"].values()) == {"watched"})
    check = scorer.get("/v1/self-check")
    assert check["sound"], check["drift"]
    _lines(scorer, at_most=20)


@pytest.mark.long
def test_what_it_missed_behind_a_compaction_is_listed_again(
    start: Started, plane: ControlPlane, cluster: Scenery, writer: ClusterWriter
) -> None:
    with TcpProxy(plane.api_server.port) as proxy:
        scorer = start(kubeconfig=plane.write_kubeconfig("admin", plane.token, url=proxy.url))
        old = writer.create_many(cluster.pod(f"old-{i}", service=i % 20, node=cluster.nodes[i % 30]) for i in range(40))
        lost = writer.create(node("lost-node", cpu="4"))
        assert eventually(lambda: _equals_server(scorer, writer))
        with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
            proxy.refuse(True)
            writer.delete_many([*old[:25], lost])
            new = writer.create_many(cluster.pod(f"new-{i}", service=3, node=cluster.nodes[i]) for i in range(30))
            plane.api_server.stop()
            plane.etcd.compact()
            plane.api_server.start()
            proxy.refuse(False)
            with ClusterWriter(plane) as restarted:
                assert eventually(lambda: _equals_server(scorer, restarted), 30)
                # A scorer that has just read everything is of the same opinion.
                fresh = start()
                for i in range(20):
                    body = {"pod": cluster.pod("any", service=i)}
                    mine, other = scorer.post("/v1/scores", body)["scores"], fresh.post("/v1/scores", body)["scores"]
                    assert max(abs(mine[name] - other[name]) for name in other) < 0.01 and mine.keys() == other.keys()
                restarted.delete_many([*old, *new])
                assert eventually(lambda: _equals_server(scorer, restarted))
        assert asker.failures == []
        check = scorer.get("/v1/self-check")
        assert check["sound"] and check["nodes"] == N_NODES, check["drift"]
        _lines(scorer, at_most=20)


def test_a_cluster_not_heard_of_for_long_scores_neutrally(
    start: Started, plane: ControlPlane, cluster: Scenery
) -> None:
    scorer = start(settings=settings_of(ladder={"oldest_state": "6s"}))
    body = {"pod": cluster.pod("any")}
    plane.api_server.kill()
    assert eventually(lambda: scorer.post("/v1/scores", body)["level"] == 4, 20)
    answer = scorer.post("/v1/scores", body)
    assert set(answer["scores"].values()) == {50.0}
    assert any("API server has not been heard of" in reason for reason in answer["reasons"])
    assert scorer.http.get("/readyz").status_code == 200  # a restart would only lose what is known
    plane.api_server.start()
    assert eventually(lambda: scorer.post("/v1/scores", body)["level"] < 4, 30)


def test_rights_taken_away_leave_the_last_state_in_use(
    start: Started, plane: ControlPlane, cluster: Scenery, writer: ClusterWriter
) -> None:
    role, binding = writer.create(MAY_READ), writer.create(GRANT)
    try:
        with TcpProxy(plane.api_server.port) as proxy:
            scorer = start(kubeconfig=plane.write_kubeconfig("nobody", plane.powerless_token, url=proxy.url))
            writer.delete(binding)
            proxy.cut()  # rights are looked at when a watch begins
            assert eventually(lambda: "403" in scorer.get("/v1/status")["sources"]["pods"])
            missed = writer.create(cluster.pod("missed", node=cluster.nodes[0]))
            assert len(scorer.post("/v1/scores", {"pod": cluster.pod("any")})["scores"]) == N_NODES
            assert scorer.get("/v1/status")["pods"] == N_PODS
            assert scorer.get("/v1/self-check")["sound"]
            assert "403" in scorer.log and "pods" in scorer.log
            writer.create(GRANT)
            assert eventually(lambda: scorer.get("/v1/status")["pods"] == N_PODS + 1, 30)
            writer.delete(missed)
            _lines(scorer, at_most=20)
    finally:
        writer.delete(GRANT)
        writer.delete(role)


def _ends(*arguments: str | Path) -> tuple[int, str]:
    """Exit status and stderr of a scorer that cannot start."""
    command = [sys.executable, "-m", "forecast_scheduler", "scorer", "--port", "0", *map(str, arguments)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "scorer:" not in ended.stdout
    return ended.returncode, ended.stderr


def test_missing_rights_end_it_at_once_with_the_way_out(plane: ControlPlane, models: Path) -> None:
    kubeconfig = plane.write_kubeconfig("nobody", plane.powerless_token)
    status, said = _ends("--kubeconfig", kubeconfig, "--models", models)
    assert status == 2
    assert "forbids to list nodes" in said and "ClusterRole" in said and len(said.splitlines()) == 1


def test_missing_rights_on_pods_alone_are_found_at_the_start(
    plane: ControlPlane, writer: ClusterWriter, models: Path
) -> None:
    no_pods = MAY_READ | {"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]}
    role = writer.create(no_pods)
    binding = writer.create(GRANT)
    try:
        kubeconfig = plane.write_kubeconfig("nobody", plane.powerless_token)
        status, said = _ends("--kubeconfig", kubeconfig, "--models", models)
    finally:
        writer.delete(binding)
        writer.delete(role)
    assert status == 2
    assert "forbids to list pods" in said and len(said.splitlines()) == 1


def test_a_wrong_token_ends_it_at_once(plane: ControlPlane, models: Path) -> None:
    status, said = _ends("--kubeconfig", plane.write_kubeconfig("stranger", "wrong"), "--models", models)
    assert status == 2
    assert "401" in said and len(said.splitlines()) == 1


def test_an_api_server_that_is_away_at_the_start_is_told(plane: ControlPlane, models: Path) -> None:
    plane.api_server.kill()
    status, said = _ends("--kubeconfig", plane.kubeconfig, "--models", models)
    assert status == 1
    assert plane.url in said and len(said.splitlines()) == 1
