from __future__ import annotations

import msgspec
import pytest

from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import RESOURCES, FakeScorer


def test_nodes_have_peaks_and_curves_of_their_half_hours(client: AppClient, scorer: FakeScorer) -> None:
    nodes = client.get("/v1/nodes").json()["nodes"]
    assert len(nodes) == 50
    today = nodes[0]["today"]
    assert today["share"] == pytest.approx(today["expected"] / today["capacity"])
    assert today["at"].startswith("2026-03-11T") and nodes[0]["tomorrow"]["at"].startswith("2026-03-12T")
    body = client.get("/v1/nodes/node-03/forecast").json()
    assert [c["resource"] for c in body["curves"]] == list(RESOURCES)
    cpu, log = body["curves"][0], body["curves"][-1]
    assert len(body["starts"]) == len(cpu["expected"]) == len(cpu["bound"]) == len(cpu["actual"]) == len(scorer.starts)
    assert cpu["actual"][-1] is None and cpu["actual"][0] is not None
    assert log["bound"] is None and log["actual"] is None


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/v1/nodes/gone/forecast", 404, "node 'gone' is not known"),
        ("/v1/services/shop/Deployment/gone/forecast", 404, "is not known"),
        ("/v1/services/a%2Fb/c/d/forecast", 404, ""),
        ("/v1/heat-map?resource=gone", 422, "resource 'gone' is not known"),
        ("/v1/heat-map?top=0", 422, "top"),
        ("/v1/heat-map?top=many", 422, "top"),
        ("/v1/nodes/" + "x" * 300 + "/forecast", 422, "node"),
        ("/v2/nodes", 404, "/openapi.json"),
        ("/v1/nodes/", 404, "/openapi.json"),
        ("/docs", 404, "/openapi.json"),
        ("/redoc", 404, "/openapi.json"),
        ("/page.js/../app.py", 404, ""),
    ],
)
def test_what_is_not_there_is_told_in_a_sentence(client: AppClient, path: str, status: int, says: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"} and says in answer.json()["error"]


def test_services_are_named_and_the_heat_map_limited(client: AppClient) -> None:
    body = client.get("/v1/services/shop/Deployment/cart/forecast").json()
    assert body["name"] == "shop/Deployment/cart" and body["curves"][0]["capacity"] is None
    listed = client.get("/v1/services").json()["services"][0]
    assert (listed["namespace"], listed["kind"], listed["name"]) == ("shop", "Deployment", "cart")
    body = client.get("/v1/heat-map", params={"top": 7, "resource": "cpu"}).json()
    assert (len(body["nodes"]), body["n_nodes"], body["resource"]) == (7, 50, "cpu")
    assert [len(row) for row in body["share"]] == [len(body["hours"])] * 7
    peaks = [max(row) for row in body["share"]]
    assert peaks == sorted(peaks, reverse=True)
    answer = client.get("/v1/scores")
    assert answer.status_code == 405 and answer.headers["allow"] == "POST"
    assert "GET is not allowed" in answer.json()["error"]


def test_unknown_load_is_null_and_numbers_keep_seven_digits(client: AppClient) -> None:
    body = client.get("/v1/virtual-available").json()
    assert body["available"][0][4] is None and body["available"][1][4] > 0
    assert body["resources"] == list(RESOURCES)
    import numpy as np

    from serving.json_answers import json_body

    values = np.array([[123456789.123, 1.23456789e-9], [0.0, np.nan]])
    assert msgspec.json.decode(json_body(values)) == [[123456800.0, 1.234568e-9], [0.0, None]]
    with pytest.raises(TypeError, match="no JSON form"):
        json_body(object())
