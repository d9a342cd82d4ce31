"""Ten thousand requests that kube-scheduler would never send, to the real extender: answered in its protocol's own
terms, and right afterwards."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import pytest

from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.extender.protocol.recorded_requests import recorded
from tests.processes.conftest import Started
from tests.processes.placing import counter
from tests.serving.broken_bodies import broken

VERBS = ("filter", "prioritize", "preempt", "bind")
RECORDED = ("names-filter", "nodes-filter", "names-preempt", "nodes-preempt", "bind")
JSON_TYPE = {"Content-Type": "application/json"}
SETTINGS = {
    "scorer": {"usage_every": "1s", "model_every": "1s"},
    "extender": {"deadline": "10s", "serving": {"max_body_bytes": 65_536}},
}


NUMBERS: list[Any] = ["1e999", "-1", "0.1m", "9" * 300, "1Ei", "NaN", "", "∞", 5, None, True, ["1"], {"a": 1}, "1e-400"]
NAMES: list[Any] = ["node-00000.cluster.example", "", "x" * 300, "\x00", "ä", "../..", None, 7, [], "a/b/c", "\ud7ff"]


def _bad_pod(rng: random.Random) -> dict[str, Any]:
    """A pod that may be anything in some of its fields, and is right in others."""
    container: dict[str, Any] = {
        "name": "main",
        "resources": {"requests": {rng.choice(["cpu", "memory", "nvidia.com/gpu", ""]): rng.choice(NUMBERS)}},
    }
    metadata: dict[str, Any] = {"name": rng.choice(NAMES), "namespace": rng.choice(NAMES)}
    if rng.random() < 0.3:
        metadata["annotations"] = {"forecast-scheduler.io/virtual-request": rng.choice(['{"cpu": "1"}', "{", "[]", 3])}
    if rng.random() < 0.3:
        kind = rng.choice(["ReplicaSet", "Job", "Node", "", None])
        metadata["ownerReferences"] = [{"kind": kind, "name": rng.choice(NAMES), "controller": True, "uid": "u"}]
    pod: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [container] * rng.choice([0, 1, 3])}}
    if rng.random() < 0.2:
        pod[rng.choice(["spec", "metadata", "status"])] = rng.choice(NUMBERS)
    return pod


def _question(rng: random.Random, nodes: list[str]) -> bytes:
    if rng.random() < 0.4:
        return broken(recorded(rng.choice(RECORDED)), rng)
    body: dict[str, Any] = {"Pod": _bad_pod(rng)}
    match rng.randrange(5):
        case 0:
            body["NodeNames"] = rng.choice(NAMES)
        case 1:
            body["NodeNames"] = [name for name in rng.choices(NAMES, k=4) if isinstance(name, str)]
        case 2:
            body["NodeNames"] = rng.choices(nodes, k=5) * rng.choice([1, 3])  # the same ones again
        case 3:
            body["Nodes"] = {"items": [{"metadata": {"name": rng.choice(NAMES)}, "status": rng.choice(NUMBERS)}]}
        case _:
            meta = {rng.choice(nodes): {"Pods": [{"UID": str(rng.choice(NAMES))}], "NumPDBViolations": 1}}
            body["NodeNameToMetaVictims"] = meta
    if rng.random() < 0.02:
        body["Padding"] = "x" * 70_000
    return json.dumps(body).encode()


def _good(process: ScorerProcess, cluster: Scenery) -> dict[str, Any]:
    """Answers to some questions in good order: nodes that pass and points, by pod."""
    answers: dict[str, Any] = {}
    for service in range(3):
        question = {"Pod": cluster.pod(f"any-{service}", service=service), "NodeNames": cluster.nodes}
        passed = process.post("/filter", question)["NodeNames"]
        points = process.http.post("/prioritize", json=question).raise_for_status().json()
        answers[f"any-{service}"] = (passed, {one["Host"]: one["Score"] for one in points})
    return answers


def _alike(one: dict[str, Any], other: dict[str, Any], nodes: list[str]) -> bool:
    """The same nodes pass; points as near as they are with usage measured anew each second."""
    return all(
        one[pod][0] == other[pod][0]
        and all(abs(one[pod][1].get(node, 0) - other[pod][1].get(node, 0)) <= 2 for node in nodes)
        for pod in one
    )


def _abuse(process: ScorerProcess, cluster: Scenery, writer: ClusterWriter, count: int) -> set[int]:
    rng, seen, nodes = random.Random(12), set(), cluster.nodes
    before = _good(process, cluster)
    placed = {p["metadata"]["uid"]: p["spec"].get("nodeName") for p in writer.list_all("pods")}
    for number in range(count):
        verb, body = rng.choice(VERBS), _question(rng, nodes)
        answer: httpx.Response = process.http.post(f"/{verb}", content=body, headers=JSON_TYPE)
        assert answer.status_code in (200, 400, 413), (number, verb, body, answer.text)
        if answer.status_code != 200:
            assert set(answer.json()) == {"Error"}
        elif verb == "filter" and not answer.json()["Error"]:
            reply = answer.json()
            assert (reply["NodeNames"] is None) != (reply["Nodes"] is None)  # neither would be: no node fits
        seen.add(answer.status_code)
    name = "forecast_extender_requests_total"
    failed = {verb: counter(process, name, outcome="failed", verb=verb) for verb in VERBS if verb != "bind"}
    assert not any(failed.values()), (failed, process.log[-3000:])
    # Pods that were asked about are charged for two seconds; after that nothing of them is left.
    assert eventually(lambda: _alike(before, _good(process, cluster), nodes))
    assert {p["metadata"]["uid"]: p["spec"].get("nodeName") for p in writer.list_all("pods")} == placed
    assert "Traceback" not in process.log, process.log.partition("Traceback")[2][:4000]
    return seen


@pytest.fixture
def live(start: Started, prometheus: PrometheusServer) -> ScorerProcess:
    return start("--prometheus", prometheus.url, "--bind", settings=SETTINGS, command="extender")


def test_hundreds_of_bad_requests_change_nothing(live: ScorerProcess, cluster: Scenery, writer: ClusterWriter) -> None:
    assert _abuse(live, cluster, writer, 600) >= {200, 400, 413}
