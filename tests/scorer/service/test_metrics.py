from __future__ import annotations

import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster.degradation import Level
from forecast.hot_share import HOT_SHARE
from forecast.model_findings import ModelFinding
from scorer.service.app import create_app
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from testing.app_client import AppClient
from testing.servers.prometheus import promtool
from tests.scorer.service.fake_scorer import NOW, FakeScorer


def _samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _value(text: str, series: str, /, **labels: str) -> float:
    return _samples(text)[series, frozenset(labels.items())]


def test_nodes_and_services_have_their_series(client: AppClient, scorer: FakeScorer) -> None:
    text = client.get("/metrics").text
    figures = scorer.node_figures()
    node = {"node": "node-02", "resource": "memory"}
    assert _value(text, "forecast_node_predicted_usage", **node, quantile="0.95") == pytest.approx(
        figures.usage[1, 1, 1], rel=1e-6
    )
    assert _value(text, "forecast_node_model_usage", **node, quantile="0.5") == pytest.approx(
        figures.model_usage[1, 1, 0], rel=1e-6
    )
    peak = _value(text, "forecast_node_predicted_peak", **node, quantile="0.5", day="tomorrow", as_of="now")
    assert peak == pytest.approx(figures.peak[1, 1, 0, 1], rel=1e-6)
    assert _value(text, "forecast_node_virtual_available", **node) == pytest.approx(figures.available[1, 1], rel=1e-6)
    assert _value(text, "forecast_node_capacity", **node) == pytest.approx(figures.capacity[1, 1], rel=1e-6)
    # To the second: seven digits would be a quarter of an hour.
    assert _value(text, "forecast_node_predicted_peak_timestamp_seconds", **node, day="today") == NOW.timestamp()
    service = {"namespace": "shop", "kind": "Deployment", "name": "cart", "resource": "cpu", "quantile": "0.5"}
    assert _value(text, "forecast_service_predicted_peak", **service) == 0.25
    assert _value(text, "forecast_backtest_loss", resource="cpu", quantile="0.95") == 0.021
    assert _value(text, "forecast_unknown_service_pods") == 9
    # Unknown figures have no series: no midnight has passed, log is no limit, and not available on the first node.
    assert 'as_of="midnight"' not in text
    limits = [labels for name, labels in _samples(text) if name == "forecast_node_capacity"]
    assert limits and not any(("resource", "log") in labels for labels in limits)
    assert ("forecast_node_virtual_available", frozenset({("node", "node-01"), ("resource", "log")})) not in _samples(
        text
    )


def test_levels_and_requests_are_exported_by_route(client: AppClient, scorer: FakeScorer) -> None:
    scorer.level = Level.OLD_MODEL
    text = client.get("/metrics").text
    assert _value(text, "forecast_degradation_level") == 2
    counts = [_value(text, "forecast_degradation_level_nodes", level=str(level)) for level in range(5)]
    assert counts == [0, 0, 50, 0, 0]
    for path in ("/v1/nodes/node-01/forecast", "/v1/nodes/node-02/forecast", "/v1/nodes/gone/forecast", "/x1", "/x2"):
        client.get(path)
    client.request("BREW", "/v1/nodes")
    text = client.get("/metrics").text
    name, route = "forecast_scorer_http_requests_total", "/v1/nodes/{node}/forecast"
    assert _value(text, name, method="GET", route=route, status="200") == 2
    assert _value(text, name, method="GET", route=route, status="404") == 1
    assert _value(text, name, method="GET", route="other", status="404") == 2
    assert "BREW" not in text and "/x1" not in text


def test_findings_of_the_run_are_exported_and_in_the_status(client: AppClient, scorer: FakeScorer) -> None:
    assert "forecast_model_findings{" not in client.get("/metrics").text
    scorer.findings = (ModelFinding("not reproduced", "cpu is 4 times what it was", "read on"),) * 2
    assert _value(client.get("/metrics").text, "forecast_model_findings", finding="not reproduced") == 1
    found = client.get("/v1/status").json()["model"]["findings"]
    assert found[0] == {"finding": "not reproduced", "what": "cpu is 4 times what it was", "what_to_do": "read on"}


def test_stages_of_an_answer_are_timed(client: AppClient) -> None:
    pod = {"namespace": "shop", "name": "cart-1"}
    client.post("/v1/scores", json={"pod": pod})
    client.post("/v1/explain", json={"pod": pod})
    text = client.get("/metrics").text
    counts = {s: _value(text, "forecast_scheduling_duration_seconds_count", stage=s) for s in ("decode", "explain")}
    assert counts == {"decode": 2, "explain": 1}
    assert _value(text, "forecast_scheduling_duration_seconds_count", stage="encode") == 1


def test_series_can_be_switched_off_and_names_are_escaped(scorer: FakeScorer) -> None:
    options = ScorerServiceOptions(node_metrics=False, service_metrics=False)
    with AppClient(create_app(scorer, options, hot=HOT_SHARE)) as client:
        text = client.get("/metrics").text
    assert "forecast_degradation_level 0.0" in text
    assert "forecast_node_" not in text and "forecast_service_" not in text
    odd = 'a"b\\c\nd'
    text = ScorerServiceMetrics(FakeScorer(2, node_name=odd), ScorerServiceOptions()).render().decode()
    assert any(("node", odd) in labels for _, labels in _samples(text))


def test_promtool_finds_nothing_to_complain_about(client: AppClient) -> None:
    client.post("/v1/scores", json={"pod": {"namespace": "shop", "name": "cart-1"}})
    client.get("/v1/self-check")
    text = client.get("/metrics").text
    assert "forecast_self_check_drift" in text
    promtool("--version")  # so that it is there
    from testing.servers.prometheus import _binaries

    # No check=True: what it found is worth more than that it found something. "quantile" as a label of a gauge is
    # meant: the same name and label let a dashboard compare predicted and actual peaks.
    found = subprocess.run(
        [str(_binaries() / "promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    complaints = (found.stdout + found.stderr).splitlines()
    assert found.returncode in (0, 3), complaints
    assert [c for c in complaints if not c.endswith('should not have "quantile" label')] == []
