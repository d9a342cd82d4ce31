from __future__ import annotations

import pytest

from cluster.degradation import Level
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from testing.app_client import AppClient
from testing.constants import with_constants
from tests.scorer.service.fake_scorer import FakeScorer

POD = {
    "metadata": {"namespace": "shop", "name": "cart-1"},
    "spec": {"containers": [{"name": "cart", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b'{"pod": \xff}', 400, "not JSON"),
        (b"[" * 90_000, 422, "got `array`"),
        (b'{"pod": ' + b'{"metadata":' * 50_000, 400, "nested too deeply"),
        (b'{"pod": {"spec": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}", 400, "nested too deeply"),
        (b"null", 422, "object"),
        (b"{}", 422, "pod"),
        (b'{"pod": 3}', 422, "object"),
        (b'{"pod": {}}', 422, "neither spec nor name"),
        (b'{"pod": {"spec": 3}}', 422, ""),
        (b'{"pod": {"name": "cart-1"}, "nodes": [1]}', 422, "nodes"),
        (b'{"pod": {"name": "cart-1"}, "weights": {"predicted_peak": "much"}}', 422, "weights"),
        (b'{"pod": {"name": "cart-1"}, "weight": {}}', 422, "weight"),
        (b'{"pod": {"namespace": "shop", "name": "gone"}}', 422, "'shop/gone' is not known"),
        (b'{"pod": {"namespace": "shop", "name": "cart-1"}, "weights": {"wrong": 1}}', 422, "'wrong' is not known"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(client: AppClient, body: bytes, status: int, says: str) -> None:
    answer = client.post("/v1/scores", content=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert says in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_scores_say_what_weighs_and_how_degraded_and_too_many_nodes_are_refused(
    client: AppClient, scorer: FakeScorer
) -> None:
    scorer.level, scorer.reasons, scorer.size[1] = Level.REQUESTS, ("the model is 20 days old",), float("nan")
    body = client.post("/v1/scores", json={"pod": POD, "nodes": ["node-02"], "weights": {"predicted_peak": 3}}).json()
    assert (body["level"], body["reasons"]) == (3, ["the model is 20 days old"])
    assert (body["scores"], body["weights"]) == ({"node-02": None}, {"predicted_peak": 3.0})
    with AppClient(create_app(scorer, with_constants(ScorerServiceOptions(), max_nodes=3), hot=HOT_SHARE)) as client:
        assert client.post("/v1/scores", json={"pod": POD, "nodes": ["a", "b", "c"]}).status_code == 200
        answer = client.post("/v1/scores", json={"pod": POD, "nodes": ["a", "b", "c", "d"]})
    assert answer.status_code == 422 and "at most 3" in answer.json()["error"]


def test_a_pod_is_scored_and_explained_on_the_nodes_asked_for(client: AppClient, scorer: FakeScorer) -> None:
    answer = client.post("/v1/scores", json={"pod": POD, "nodes": ["node-02", "node-30", "elsewhere"]})
    assert answer.status_code == 200
    body = answer.json()
    assert list(body["scores"]) == ["node-02", "node-30", "elsewhere"]
    assert 0 <= body["scores"]["node-02"] < body["scores"]["node-30"] <= 100
    assert (body["unknown_nodes"], body["model"], body["level"]) == (["elsewhere"], "20260311-0200", 0)
    named = client.post("/v1/scores", json={"pod": {"namespace": "shop", "name": "cart-1"}})
    assert list(named.json()["scores"]) == scorer.names
    assert [pod.name for pod in scorer.asked] == ["cart-1"] * 2 and scorer.asked[0].requests["cpu"] == 0.5
    body = client.post("/v1/explain", json={"pod": POD, "top": 2}).json()
    assert [len(body["nodes"]), body["n_nodes"], body["runner_up"]] == [2, 50, body["nodes"][1]["node"]]
    best = body["nodes"][0]
    assert sum(c["points"] for c in best["contributions"]) == pytest.approx(best["score"])
    assert best["peak_with"]["expected"] == pytest.approx(best["peak_before"]["expected"] + 0.5)
    assert best["peak_with"]["resource"] == "cpu" and best["peak_with"]["at"].endswith(":30:00Z")
    assert body["virtual_request"] == {"cpu": 0.31, "memory": 9e8}
    for top in (0, -1, 1001, "many"):
        assert client.post("/v1/explain", json={"pod": POD, "top": top}).status_code == 422
