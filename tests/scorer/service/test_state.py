from __future__ import annotations

from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer


def test_scores_are_given_until_the_end_and_state_from_the_start(client: AppClient, scorer: FakeScorer) -> None:
    scorer.ready = False
    for path in ("/readyz", "/v1/nodes", "/v1/self-check"):
        answer = client.get(path)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert "pods have not been listed yet" in answer.json()["error"]
    assert client.get("/healthz").json() == {"ok": True}
    assert client.get("/v1/status").json()["ready"] is False
    metrics = client.get("/metrics")
    assert metrics.status_code == 200 and "\nforecast_ready 0.0\n" in metrics.text
    scorer.ready = True
    assert client.get("/readyz").status_code == client.get("/v1/nodes").status_code == 200
    client.app.state.service.draining = True
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "shutting down" in answer.json()["error"]
    assert client.get("/v1/status").json()["ready"] is False
    assert client.get("/v1/nodes").status_code == client.get("/healthz").status_code == 200


def test_drift_is_counted_and_an_error_of_ours_shows_nothing(
    client: AppClient, scorer: FakeScorer, caplog: object
) -> None:
    assert "forecast_self_check_drift" not in client.get("/metrics").text  # nobody has looked yet
    assert client.get("/v1/self-check").json()["sound"] is True
    assert "\nforecast_self_check_drift 0.0\n" in client.get("/metrics").text
    scorer.drift = ("requested of node-03",)
    body = client.get("/v1/self-check").json()
    assert (body["sound"], body["drift"]) == (False, ["requested of node-03"])
    assert "\nforecast_self_check_drift 1.0\n" in client.get("/metrics").text

    def fail() -> None:
        raise ZeroDivisionError("secret detail")

    scorer.fail = fail
    answer = client.get("/v1/nodes")
    assert answer.status_code == 500
    assert "secret" not in answer.text and set(answer.json()) == {"error"}
    assert "secret detail" in caplog.text  # type: ignore[attr-defined]
    scorer.fail = lambda: None
    assert client.get("/v1/nodes").status_code == 200


def test_answers_carry_security_headers_and_the_page_is_loaded_once(client: AppClient) -> None:
    for path in ("/", "/v1/nodes", "/v1/gone", "/metrics"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
    first = client.get("/page.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = client.get("/page.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and again.content == b""
