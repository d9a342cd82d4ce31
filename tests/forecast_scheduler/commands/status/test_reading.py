"""How objects, services and Prometheus are read: the shipped manifests, the answers of our own classes."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import msgspec
import pytest

from forecast_scheduler.commands.status.answers import alerts_of, answer_of, samples_of, service_of_url
from forecast_scheduler.commands.status.api_objects import (
    jobs_of,
    nightly_of,
    pods_of,
    store_url_of,
    webhook_of,
    workloads_of,
)
from forecast_scheduler.commands.status.at_once import NotRead, ask_all
from forecast_scheduler.commands.status.facts import PARTS, TRAINER, Webhook
from testing.processes.shipped_schedule import shipped
from tests.scorer.service.fake_scorer import FakeScorer


def manifests(kind: str, *files: str) -> list[dict[str, Any]]:
    return [one for _, one in shipped(*files) if one["kind"] == kind]


def test_every_shipped_deployment_is_a_part_with_its_settings() -> None:
    files = [f"base/{part}/{part}.yaml" for part in PARTS]
    found, settings = workloads_of(json.dumps({"items": manifests("Deployment", *files)}).encode())
    assert set(found) == set(PARTS)
    assert {one.image for one in found.values()} == {"forecast-scheduler"}
    assert all(one.wanted == 2 and one.ready == 0 for one in found.values())
    assert settings == "forecast-scheduler-settings"


def test_the_shipped_settings_say_where_prometheus_is() -> None:
    (cron_job,) = manifests("CronJob", "base/trainer/trainer.yaml")
    nightly, settings = nightly_of(json.dumps(cron_job).encode())
    assert (nightly.schedule, nightly.suspended, settings) == ("17 3 * * *", False, "forecast-scheduler-settings")
    text = "prometheus:\n  url: http://prometheus-k8s.monitoring:9090\n"
    assert (
        store_url_of(json.dumps({"data": {"settings.yaml": text}}).encode()) == "http://prometheus-k8s.monitoring:9090"
    )
    assert store_url_of(b'{"data": {"settings.yaml": "prometheus: ["}}') == ""


def job(name: str, condition: str = "", hour: int = 3, labels: dict[str, str] | None = None) -> dict[str, Any]:
    conditions = [
        {
            "type": condition,
            "status": "True",
            "lastTransitionTime": f"2026-11-30T{hour:02}:20:00Z",
            "message": "it said",
        }
    ]
    return {
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": TRAINER} if labels is None else labels},
        "status": {"startTime": f"2026-11-30T{hour:02}:17:00Z", "conditions": conditions if condition else []},
    }


def test_jobs_of_the_trainer_alone_count_the_newest_first() -> None:
    items = [job("old", "Complete"), job("new", "Failed", 5), job("now", hour=6), job("other", "Failed", 7, {})]
    found = jobs_of(json.dumps({"items": items}).encode())
    assert [(one.name, one.succeeded, bool(one.ended), one.why) for one in found] == [
        ("now", False, False, ""),
        ("new", False, True, "it said"),
        ("old", True, True, ""),
    ]


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({"containerStatuses": [{"ready": True, "state": {"running": {}}}]}, ""),
        (
            {
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}}}
                ]
            },
            "CrashLoopBackOff after exit status 2",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
        ({"containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]}, "ended with status 137"),
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, "its readiness probe fails"),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]}, "0/3 nodes"),
        ({"phase": "Pending"}, ""),
    ],
)
def test_the_status_of_a_pod_says_what_is_wrong(status: dict[str, Any], trouble: str) -> None:
    (found,) = pods_of(json.dumps({"items": [{"metadata": {"name": "a"}, "status": status}]}).encode())
    assert found.trouble == trouble


def test_what_a_scorer_answers_is_read() -> None:
    said = FakeScorer(5).status()
    found = answer_of(msgspec.json.encode(said))
    assert (found.level, found.ready, found.nodes, found.reasons) == (said.level, said.ready, said.nodes, said.reasons)
    assert said.model is not None and found.model is not None
    assert (found.model.version, found.model.age) == (said.model.version, said.model.age_seconds)


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("http://prometheus-k8s.monitoring:9090", ("monitoring", "http:prometheus-k8s:9090", "")),
        ("https://thanos.monitoring.svc/api/", ("monitoring", "https:thanos:443", "/api")),
        ("http://mimir.metrics.svc.cluster.local/prometheus", ("metrics", "http:mimir:80", "/prometheus")),
        ("http://127.0.0.1:9090", None),
        ("https://prometheus.example.com", None),
        ("http://prometheus:9090", None),
    ],
)
def test_the_name_of_a_service_is_asked_through_the_api_server(url: str, service: object) -> None:
    assert service_of_url(url) == service


def test_alerts_that_fire_are_counted_by_name_and_severity() -> None:
    def alert(name: str, severity: str, state: str = "firing") -> dict[str, Any]:
        return {"labels": {"alertname": name, "severity": severity}, "annotations": {"summary": "s"}, "state": state}

    fire = [alert("ForecastB", "warning"), alert("ForecastB", "warning"), alert("ForecastC", "critical")]
    others = [alert("Watchdog", "none"), alert("ForecastD", "critical", "pending")]
    found = alerts_of(json.dumps({"data": {"alerts": fire + others}}).encode())
    assert [(one.name, one.severity, one.number) for one in found] == [
        ("ForecastC", "critical", 1),
        ("ForecastB", "warning", 2),
    ]


def test_samples_keep_their_labels() -> None:
    series = {"metric": {"__name__": "forecast_leader", "job": "x"}, "value": [1.0, "1"]}
    (found,) = samples_of(json.dumps({"data": {"result": [series]}}).encode())
    assert (found.name, found.labels["job"], found.value) == ("forecast_leader", "x", 1.0)


def test_a_question_that_hangs_keeps_no_other_from_its_answer() -> None:
    ended = threading.Event()

    def fails() -> None:
        raise ValueError("no")

    try:
        found = ask_all({"hangs": ended.wait, "answers": lambda: 1, "fails": fails}, 0.2)
    finally:
        ended.set()
    assert isinstance(found["hangs"], NotRead) and isinstance(found["fails"], NotRead)
    assert str(found["fails"]) == "ValueError: no"
    assert found["answers"] == 1


def test_the_webhook_of_a_configuration_is_asked_where_the_api_server_asks_it() -> None:
    (shipped_one,) = manifests("MutatingWebhookConfiguration", "base/webhook/configuration.yaml")
    assert webhook_of(json.dumps(shipped_one).encode()) == Webhook(refuses=False)
    asked = {"url": "https://127.0.0.1:8443/mutate", "caBundle": base64.b64encode(b"PEM").decode()}
    by_url = {"webhooks": [{"clientConfig": asked, "failurePolicy": "Fail"}]}
    assert webhook_of(json.dumps(by_url).encode()) == Webhook(True, "https://127.0.0.1:8443/mutate", b"PEM")
