"""Notifications of hot nodes by a real Alertmanager, configured as kube-prometheus does by default.

https://github.com/prometheus-operator/kube-prometheus/blob/main/jsonnet/kube-prometheus/components/alertmanager.libsonnet
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from dashboards.alerting.forecast_alerts import forecast_alerts
from testing.servers.alertmanager.running import Alertmanager, alertmanager
from testing.waiting import eventually

SAME: Final = ["namespace", "alertname"]
CONFIG: Final[dict[str, Any]] = {
    "inhibit_rules": [
        {"source_matchers": ["severity = critical"], "target_matchers": ["severity =~ warning|info"], "equal": SAME},
        {"source_matchers": ["severity = warning"], "target_matchers": ["severity = info"], "equal": SAME},
        {
            "source_matchers": ["alertname = InfoInhibitor"],
            "target_matchers": ["severity = info"],
            "equal": ["namespace"],
        },
    ],
    "receivers": [{"name": "Default"}, {"name": "Watchdog"}, {"name": "Critical"}, {"name": "null"}],
    "route": {
        "group_by": ["namespace"],
        "group_wait": "1s",  # there 30s
        "group_interval": "1s",  # there 5m
        "repeat_interval": "12h",
        "receiver": "Default",
        "routes": [
            {"matchers": ["alertname = Watchdog"], "receiver": "Watchdog"},
            {"matchers": ["alertname = InfoInhibitor"], "receiver": "null"},
            {"matchers": ["severity = critical"], "receiver": "Critical"},
        ],
    },
}
_QUIET_SECONDS: Final = 3.0
"""Several group intervals: what is not sent by then is not sent."""


def _of_evening(severity: str, nodes: int) -> dict[str, Any]:
    """What Prometheus sends of the alert at one evaluation; tests/dashboards/alert_scenes.py has its rule."""
    assert severity in {one.severity.value for one in forecast_alerts() if one.name == "ForecastHotSpotTonight"}
    return {
        "labels": {"alertname": "ForecastHotSpotTonight", "severity": severity},
        "annotations": {"summary": f"{nodes} nodes will probably be over 80% of capacity today"},
    }


def _severities(running: Alertmanager) -> list[list[str]]:
    return [[one["labels"]["severity"] for one in body["alerts"]] for body in running.sent]


def test_an_evening_has_one_notification_or_two_if_it_becomes_critical(tmp_path: Path) -> None:
    with alertmanager(tmp_path, CONFIG) as running:
        for nodes in (5, 33, 61):  # the evening gets worse: the labels stay, so it is the same alert
            running.fire([_of_evening("warning", nodes)])
            time.sleep(0.7)
        assert eventually(lambda: bool(running.sent))
        time.sleep(_QUIET_SECONDS)
        assert _severities(running) == [["warning"]]
        running.fire([_of_evening("warning", 61), _of_evening("critical", 7)])
        assert eventually(lambda: len(running.sent) > 1)
        time.sleep(_QUIET_SECONDS)
        assert _severities(running) == [["warning"], ["critical"]]


def test_a_warning_beside_a_critical_one_is_not_sent(tmp_path: Path) -> None:
    with alertmanager(tmp_path, CONFIG) as running:
        running.fire([_of_evening("critical", 7), _of_evening("warning", 61)])
        assert eventually(lambda: bool(running.sent))
        time.sleep(_QUIET_SECONDS)
        assert _severities(running) == [["critical"]]
