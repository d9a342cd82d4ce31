"""What /metrics says of decisions."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from extender.decisions.events import EventSink
from extender.decisions.log import open_decision_log
from extender.decisions.metrics import DecisionCollector
from extender.decisions.recorder import DecisionRecorder
from tests.extender.decisions.made_up import AT, advice, pod


def test_all_outcomes_are_exported(tmp_path: Path) -> None:
    log = open_decision_log(tmp_path / "log")
    events = EventSink(lambda path, body: 403, instance="one", rate=1, burst=1)
    recorder = DecisionRecorder([log, events], version="1", clock=lambda: AT)
    registry = CollectorRegistry()
    registry.register(DecisionCollector(recorder, log, events))
    log.start()
    events.start()
    for uid, node in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        level = "requests" if uid == "c" else "fresh"
        recorder.advised(advice({"n1": 1, "n2": 0}, uid=uid, level=level))
        recorder.bound(pod(uid, node))
    recorder.advised(advice({"n1": 1}, uid="waits"))
    log.stop()
    events.stop()
    text = generate_latest(registry).decode()
    for line in (
        'forecast_decisions_total{outcome="as_advised"} 1.0',
        'forecast_decisions_total{outcome="elsewhere"} 2.0',
        'forecast_decisions_total{outcome="dropped"} 0.0',
        'forecast_decisions_by_level_total{level="0"} 2.0',
        'forecast_decisions_by_level_total{level="3"} 1.0',
        'forecast_decisions_by_level_total{level="4"} 0.0',
        "forecast_decisions_pending 1.0",
        'forecast_decision_log_lines_total{outcome="written"} 3.0',
        'forecast_decision_events_total{outcome="failed"} 1.0',
        'forecast_decision_events_total{outcome="limited"} 2.0',
    ):
        assert line in text
