"""What /metrics says of decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from placement.decisions.decision_log import open_decision_log
from placement.decisions.decision_reports import DecisionCollector, EventSink
from placement.decisions.recorder import DecisionRecorder
from tests.placement.decisions.made_up import AT, advice, pod


@pytest.mark.parametrize(("is_shadow", "mode"), [(False, "active"), (True, "shadow")])
def test_all_outcomes_are_exported(tmp_path: Path, is_shadow: bool, mode: str) -> None:
    log = open_decision_log(tmp_path / "log")
    events = EventSink(lambda path, body: 403, controller="us", instance="one", rate=1, burst=1)
    recorder = DecisionRecorder([log, events], version="1", clock=lambda: AT)
    registry = CollectorRegistry()
    registry.register(DecisionCollector(recorder, log, events, is_shadow=is_shadow))
    log.start()
    events.start()
    for uid, node in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        level = "requests" if uid == "c" else "fresh"
        recorder.advised(advice({"n1": 1, "n2": 0}, uid=uid, level=level, is_shadow=is_shadow))
        recorder.bound(pod(uid, node))
    recorder.advised(advice({"n1": 1}, uid="waits"))
    log.stop()
    events.stop()
    text = generate_latest(registry).decode()
    for line in (
        f'forecast_decisions_total{{mode="{mode}",outcome="as_advised"}} 1.0',
        f'forecast_decisions_total{{mode="{mode}",outcome="elsewhere"}} 2.0',
        f'forecast_decisions_total{{mode="{mode}",outcome="dropped"}} 0.0',
        f'forecast_decisions_by_level_total{{level="0",mode="{mode}"}} 2.0',
        f'forecast_decisions_by_level_total{{level="3",mode="{mode}"}} 1.0',
        f'forecast_decisions_by_level_total{{level="4",mode="{mode}"}} 0.0',
        "forecast_decisions_pending 1.0",
        'forecast_decision_log_lines_total{outcome="written"} 3.0',
        f'forecast_decision_events_total{{outcome="failed"}} {0.0 if is_shadow else 1.0}',
        f'forecast_decision_events_total{{outcome="limited"}} {0.0 if is_shadow else 2.0}',
    ):
        assert line in text
