"""The command `forecast-scheduler schedule` with the shipped rights on a real API server: pods are bound, it says what
it is at, and it ends in good order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.decisions.decision_log_reader import read_decisions
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually

NAMESPACE = "forecast-scheduler"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/forecast-scheduler"
SETTINGS: dict[str, Any] = {
    "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
    "schedule": {"leader_election": {"duration": "60s", "renew_deadline": "40s", "retry_period": "1s"}},
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, ClusterWriter(running) as writer, Api(running) as api:
        rights = ("base/common/namespace.yaml", "base/schedule/rbac.yaml", "components/gpu/rbac.yaml")
        for path, manifest in shipped(*rights, "crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)
        ours = {"forecast-scheduler.io/domain": "forecast-scheduler"}
        for name in ("node-1", "node-2"):
            writer.create(node(name, cpu="4", labels=ours))
        # Too few cores for anything but the pod that wants a card.
        writer.create(node("cards", cpu="1", reserved_cpu="980m", labels=ours, extended={"nvidia.com/gpu": "1"}))
        writer.create(node("theirs"))
        yield running


@pytest.fixture
def kubeconfig(plane: ControlPlane) -> Path:
    """Of the shipped service account."""
    with Api(plane) as api:
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/forecast-scheduler-schedule/token"
        token = api.request("POST", account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return plane.write_kubeconfig("schedule", token)


def _process(tmp_path: Path, kubeconfig: Path, *arguments: str | Path) -> ScorerProcess:
    usual = ("--kubeconfig", kubeconfig, "--models", tmp_path / "no-models")
    return ScorerProcess(tmp_path, *usual, *arguments, settings=SETTINGS, command="schedule")


def _nodes(writer: ClusterWriter, prefix: str) -> list[str]:
    pods = [one for one in writer.list_all("pods") if one["metadata"]["name"].startswith(prefix)]
    return sorted(one["spec"].get("nodeName", "") for one in pods)


def _exported(process: ScorerProcess) -> set[str]:
    text = process.http.get("/metrics").raise_for_status().text
    names = set(re.findall(r"^# TYPE (forecast_\w+) ", text, flags=re.MULTILINE))
    return {name.removesuffix("_total") for name in names if not name.endswith("_created")}


def _documented() -> set[str]:
    of_gpus = ("gpu.md", "topology.md", "node-rules.md", "dra.md", "tide.md")
    pages = ("scheduling.md", "queues.md", "tenants.md", "http-api.md", "jobs.md", *of_gpus)
    texts = [(ROOT / "docs" / "use" / page).read_text() for page in pages]
    return {name.removesuffix("_total") for text in texts for name in re.findall(r"`(forecast_\w+)", text)}


def test_pods_are_bound_and_told_of_and_the_lease_is_given_back(
    plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    options = ("--profile", "online,gpu,job", "--decisions", tmp_path / "decisions.jsonl")
    with ClusterWriter(plane) as writer, Api(plane) as api, _process(tmp_path, kubeconfig, *options) as process:
        for number in range(6):
            name = "job-scheduler" if number % 2 else "forecast-scheduler"
            writer.create(pod(f"cart-{number}", scheduler_name=name))
        writer.create(pod("large", cpu="100", scheduler_name="forecast-scheduler"))
        writer.create(pod("elses"))
        half = {"forecast-scheduler.io/gpu-milli": "500", "forecast-scheduler.io/tide": "inference"}
        few = {"cpu": "10m", "memory": "16Mi"}
        writer.create(pod("half", scheduler_name="gpu-scheduler", annotations=half, requests=few))
        assert eventually(lambda: "" not in _nodes(writer, "cart")), process.log
        assert set(_nodes(writer, "cart")) == {"node-1", "node-2"}
        assert _nodes(writer, "elses") == [""]

        assert eventually(lambda: _nodes(writer, "half") == ["cards"]), process.log
        placed = api.request("GET", "/api/v1/namespaces/default/pods/half")["metadata"]["annotations"]
        assert placed["forecast-scheduler.io/gpu-index"] == "0"
        tide: dict[str, Any] = {}

        def is_planned() -> bool:
            tide.update(process.get("/v1/tide"))
            return bool(tide["pools"])

        assert eventually(is_planned), process.log
        assert tide["no_forecast_because"], "there is no model"

        seen: list[dict[str, Any]] = []

        def waits() -> bool:
            pods = process.get("/v1/queue?part=unschedulable")["pods"]
            seen[:] = [one for one in pods if one["name"] == "large"]
            return bool(seen)

        assert eventually(waits), process.log
        assert "Insufficient cpu" in seen[0]["message"] and "NodeResourcesFit" in seen[0]["rejected_by"]

        def condition() -> str:
            found = api.request("GET", "/api/v1/namespaces/default/pods/large")["status"].get("conditions", [])
            return next((one.get("message", "") for one in found if one["type"] == "PodScheduled"), "")

        assert eventually(lambda: "Insufficient cpu" in condition()), process.log
        status = process.get("/v1/status")["scheduling"]
        assert status["leading"] and status["leader"] == api.request("GET", LEASE)["spec"]["holderIdentity"]
        assert process.metric("forecast_leader") == 1
        assert eventually(lambda: process.metric("forecast_assumed_pods") == 0), process.log
        assert eventually(lambda: process.metric("forecast_pod_scheduling_seconds_count") == 7), process.log
        assert process.metric('forecast_decisions_total{mode="active",outcome="as_advised"}') == 7
        told = read_decisions([tmp_path / "decisions.jsonl"]).decisions
        assert {one.pod for one in told} == {"default/half", *(f"default/cart-{number}" for number in range(6))}
        assert _exported(process) - _documented() == set()
        assert eventually(lambda: len(process.complaints) == 1), process.log
        process.http.close()  # its end would wait for an idle client that does not read
        assert process.terminate(60) == 0
        (complaint,) = process.complaints  # the rights are enough
        assert "pods=default/large" in complaint, "it is larger than any node"
        assert api.request("GET", LEASE)["spec"].get("holderIdentity", "") == ""


def test_a_dry_run_decides_and_changes_nothing(plane: ControlPlane, kubeconfig: Path, tmp_path: Path) -> None:
    with ClusterWriter(plane) as writer, Api(plane) as api, _process(tmp_path, kubeconfig, "--dry-run") as process:
        writer.create(pod("dry", scheduler_name="forecast-scheduler"))
        version = api.request("GET", "/api/v1/namespaces/default/pods/dry")["metadata"]["resourceVersion"]
        assert eventually(lambda: "would be bound" in process.log and "default/dry" in process.log), process.log
        assert process.get("/v1/status")["scheduling"]["dry_run"] is True
        process.http.close()
        assert process.terminate(60) == 0
        found = api.request("GET", "/api/v1/namespaces/default/pods/dry")
        assert found["metadata"]["resourceVersion"] == version and "nodeName" not in found["spec"]
        writer.delete(found)
