from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from extender.service.extender_app import create_app
from testing.app_client import AppClient
from tests.extender.service.conftest import PATIENT
from tests.extender.service.questions import BINDING, count_of, nodes_question, victims_question
from tests.extender.service.simple_extender import SimpleExtender
from tests.scorer.service.fake_scorer import FakeScorer


def _samples(client: AppClient) -> dict[str, float]:
    """By name and labels; fails where a family is there twice, which Prometheus would refuse."""
    text = client.get("/metrics").text
    declared = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(declared) == len(set(declared))
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[f"{sample.name}{sorted(sample.labels.items())}"] = sample.value
    return found


def test_every_verb_is_timed_and_the_state_of_the_scorer_exported(client: AppClient) -> None:
    client.post("/filter", json=nodes_question("a"))
    client.post("/prioritize", json=nodes_question("a"))
    client.post("/preempt", json=victims_question(a=["u"]))
    client.post("/bind", json=BINDING)
    found = _samples(client)
    for verb in ("filter", "prioritize", "preempt", "bind"):
        assert found[f"forecast_extender_requests_total[('outcome', 'answered'), ('verb', '{verb}')]"] == 1
        assert found[f"forecast_extender_late_total[('verb', '{verb}')]"] == 0
        assert found[f"forecast_scheduling_duration_seconds_count[('stage', '{verb}')]"] == 1
        assert found[f"forecast_extender_http_requests_total[('route', '/{verb}'), ('status', '200')]"] == 1
        assert found[f"forecast_extender_http_request_duration_seconds_count[('route', '/{verb}')]"] == 1
    assert found["forecast_scheduling_duration_seconds_count[('stage', 'decode')]"] == 4
    assert found["process_open_fds[]"] > 0
    found = _samples(client)
    assert found["forecast_ready[]"] == 1 and found["forecast_unknown_service_pods[]"] == 1
    assert not any(name.startswith("forecast_node_predicted") for name in found)


def test_what_is_done_after_an_answer_is_done_and_timed(client: AppClient, caplog: pytest.LogCaptureFixture) -> None:
    client.post("/filter", json=nodes_question("a", "b"))
    client.post("/prioritize", json=nodes_question("a", "b"))
    deadline = time.monotonic() + 5
    while _samples(client)["forecast_scheduling_duration_seconds_count[('stage', 'prepare')]"] < 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_the_series_of_a_scorer_and_of_other_parts_are_exported(extender: SimpleExtender) -> None:
    with AppClient(create_app(extender, PATIENT, scorer=FakeScorer(3))) as client:
        found = _samples(client)
    assert (
        sum(name.startswith("forecast_node_predicted_peak[") for name in found) == 3 * 5 * 4
    )  # before the first midnight
    assert any(name.startswith("forecast_service_predicted_peak") for name in found)
    assert any(name.startswith("forecast_backtest_loss") for name in found)
    assert "forecast_extender_late_total[('verb', 'filter')]" in found

    class Dropped(Collector):
        def collect(self) -> Iterator[Metric]:
            yield GaugeMetricFamily("forecast_decisions_dropped", "Made up.", value=7)

    with AppClient(create_app(extender, PATIENT, collectors=[Dropped()])) as client:
        assert count_of(client, "forecast_decisions_dropped") == 7
