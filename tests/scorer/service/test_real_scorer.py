"""The service over the real scorer: the same questions, without a model."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator

import pytest

from cluster.state_source import StateSource
from cluster.tables.cluster_file import parse_cluster
from forecast.hot_share import HOT_SHARE
from kube.decoding.decoding import Kind
from scorer.scorer import Scorer
from scorer.scorer_api import ScorerApi
from scorer.service.app import create_app
from testing.app_client import AppClient
from tests.serving.broken_bodies import mutated

POD = {
    "metadata": {"namespace": "shop", "name": "new-1"},
    "spec": {"containers": [{"name": "new", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]},
}


def _node(name: str) -> dict[str, object]:
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": size, "allocatable": size, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _pod(number: int, node: str) -> dict[str, object]:
    container = {"name": "cart", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": f"cart-{number}", "uid": f"u-{number}"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


@pytest.fixture
def real() -> Scorer:
    items = [_node(f"node-{i}") for i in range(3)] + [_pod(i, "node-0") for i in range(5)]
    objects = parse_cluster(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode())
    began = time.time()
    scorer = Scorer(source=StateSource(lambda: (True, began, {"cluster": "made up"})))
    scorer.tables.replace(Kind.NODES, objects.nodes)
    scorer.tables.replace(Kind.PODS, objects.pods)
    return scorer


@pytest.fixture
def asked(real: Scorer) -> Iterator[AppClient]:
    api: ScorerApi = real  # mypy compares the two here
    with AppClient(create_app(api, hot=HOT_SHARE)) as client:
        yield client


def test_every_question_is_answered(asked: AppClient) -> None:
    for path in (
        "/readyz",
        "/v1/status",
        "/v1/nodes",
        "/v1/nodes/node-0/forecast",
        "/v1/services",
        "/v1/services/shop/Pod/cart-1/forecast",
        "/v1/virtual-available",
        "/v1/heat-map",
        "/v1/heat-map?resource=cpu&top=1",
        "/v1/self-check",
        "/metrics",
    ):
        answer = asked.get(path)
        assert answer.status_code == 200, (path, answer.text)


def test_without_a_model_requests_decide_also_of_an_existing_pod(asked: AppClient) -> None:
    body = asked.post("/v1/scores", json={"pod": POD, "nodes": ["node-0", "node-1", "elsewhere"]}).json()
    assert body["scores"]["node-0"] < body["scores"]["node-1"]
    assert (body["level"], body["model"], body["unknown_nodes"]) == (3, None, ["elsewhere"])
    explained = asked.post("/v1/explain", json={"pod": POD}).json()
    assert {node["node"] for node in explained["nodes"]} == {"node-0", "node-1", "node-2"}
    assert explained["nodes"][-1]["node"] == "node-0"
    assert explained["judgement"] is None  # a scorer alone runs no filters, and says so
    assert explained["not_applied"][0].startswith("domain and filters of the component that places pods of")
    assert explained["virtual_request"]["cpu"] == 2
    body = asked.post("/v1/scores", json={"pod": {"namespace": "shop", "name": "cart-3"}}).json()
    assert set(body["scores"]) == {"node-0", "node-1", "node-2"}


def _break(asked: AppClient, count: int) -> None:
    rng = random.Random(6)
    for number in range(count):
        body = mutated(rng)
        answer = asked.post(rng.choice(["/v1/scores", "/v1/explain"]), content=body)
        assert answer.status_code in (200, 400, 422), (number, body, answer.text)
    assert asked.get("/v1/self-check").json()["drift"] == []
    assert asked.get("/v1/status").json()["pods"] == 5


def test_broken_bodies_leave_the_tables_sound(asked: AppClient) -> None:
    _break(asked, 500)
