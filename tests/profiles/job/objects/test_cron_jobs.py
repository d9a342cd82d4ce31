"""CronJobs as the API server writes them, and as nobody should."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from forecast.service_key import ServiceKey
from kube.decoding.job_specs import PodTemplate
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS, Concurrency, CronJobInfo, CronJobs
from tests.kube.api_json import changed

NIGHTLY: dict[str, Any] = {
    "metadata": {
        "name": "report",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-01T00:00:00Z",
        "annotations": {"forecast-scheduler.io/place": "serverless"},
    },
    "spec": {
        "schedule": "0 2 * * *",
        "timeZone": "Europe/Berlin",
        "suspend": False,
        "startingDeadlineSeconds": 300,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {
            "metadata": {"labels": {"of": "the-job"}},
            "spec": {
                "parallelism": 8,
                "completions": 20,
                "completionMode": "Indexed",
                "activeDeadlineSeconds": 3600,
                "template": {
                    "metadata": {
                        "labels": {"app": "report"},
                        "annotations": {"forecast-scheduler.io/deadline": "4h", "other.io/x": "y"},
                    },
                    "spec": {
                        "schedulerName": "job-scheduler",
                        "priorityClassName": "batch",
                        "containers": [
                            {"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                            {"name": "b", "resources": {"limits": {"cpu": 1}}},
                        ],
                        "initContainers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                    },
                },
            },
        },
    },
    "status": {"active": [{"name": "report-1"}, {"name": "report-2"}], "lastScheduleTime": "2026-11-21T01:00:00Z"},
}


def decode(manifest: dict[str, Any]) -> CronJobInfo:
    return WATCHED_CRON_JOBS.decoded(json.dumps(manifest).encode())[0]


def test_all_of_it() -> None:
    nightly = decode(NIGHTLY)
    assert nightly == CronJobInfo(
        namespace="shop",
        name="report",
        uid="u1",
        schedule="0 2 * * *",
        time_zone="Europe/Berlin",
        starting_deadline_seconds=300,
        concurrency=Concurrency.FORBID,
        parallelism=8,
        completions=20,
        completion_mode="Indexed",
        active_deadline_seconds=3600,
        template=PodTemplate(
            requests={"cpu": 2.0, "memory": 2.0**30},
            scheduler_name="job-scheduler",
            priority_class="batch",
            labels={"app": "report"},
            annotations={"forecast-scheduler.io/deadline": "4h"},
        ),
        created=datetime.fromisoformat("2026-11-01T00:00:00Z").timestamp(),
        last_scheduled=datetime.fromisoformat("2026-11-21T01:00:00Z").timestamp(),
        active=2,
    )
    assert nightly.service == ServiceKey("shop", "CronJob", "report")
    assert (nightly.scheduler_name, nightly.requests, nightly.priority, nightly.annotations) == (
        "job-scheduler",
        nightly.template.requests,
        None,
        nightly.template.annotations,
    )


@pytest.mark.parametrize(
    ("path", "value", "stays"),
    [
        ("hostNetwork", True, True),
        ("volumes", [{"name": "d", "hostPath": {"path": "/data"}}], True),
        ("volumes", [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}], True),
        ("containers", [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}]}], True),
        ("containers", [{"name": "a", "ports": [{"containerPort": 80}]}], False),
        ("volumes", [{"name": "d", "configMap": {"name": "settings"}}], False),
    ],
)
def test_whether_its_pods_need_what_their_node_has(path: str, value: Any, stays: bool) -> None:
    made = decode(changed(NIGHTLY, f"spec.jobTemplate.spec.template.spec.{path}", value))
    assert made.template.stays == stays


ODD = [
    ("spec.schedule", 5),
    ("spec.jobTemplate.spec.parallelism", "many"),
    ("spec.jobTemplate.spec.template.spec.containers", [{"resources": {"requests": {"cpu": "a lot"}}}]),
    ("spec.jobTemplate.spec.template.spec.containers", [{"resources": {"requests": {"cpu": "-1"}}}]),
    ("status.lastScheduleTime", "yesterday"),
    ("metadata.name", "a/b"),
]


@pytest.mark.parametrize(("path", "value"), ODD)
def test_one_that_cannot_be_read_costs_only_itself(path: str, value: Any) -> None:
    odd = changed(NIGHTLY, path, value)
    with pytest.raises(UndecodableObject, match=r"^CronJob.* cannot be read: "):
        decode(odd)
    page = decode_page(WATCHED_CRON_JOBS, json.dumps({"items": [odd, NIGHTLY]}).encode())
    assert page.objects == [decode(NIGHTLY)] and len(page.undecodable) == 1


def test_that_runs_begin_and_end_is_no_change_of_what_is_asked_for() -> None:
    jobs, seen = CronJobs(), [0]
    runs = changed(changed(NIGHTLY, "status.lastScheduleTime", "2026-11-22T01:00:00Z"), "status.active", None)
    steps: list[tuple[Callable[[], None], bool]] = [
        (lambda: jobs.put(decode(NIGHTLY)), True),
        (lambda: jobs.put(decode(runs)), False),
        (lambda: jobs.put(decode(changed(runs, "spec.schedule", "5 * * * *"))), True),
        (lambda: jobs.delete(decode(runs)), True),
        (lambda: jobs.replace([]), True),
    ]
    for step, is_change in steps:
        step()
        seen.append(jobs.changes)
        assert (seen[-1] != seen[-2]) == is_change
    assert decode(runs) != decode(NIGHTLY)


def test_they_come_change_and_go() -> None:
    heard: list[tuple[CronJobInfo, ...]] = []
    jobs = CronJobs(listeners=[lambda some: heard.append(tuple(some))])
    a, b = decode(changed(NIGHTLY, "metadata.name", "a")), decode(changed(NIGHTLY, "metadata.name", "b"))
    later = decode(changed(changed(NIGHTLY, "metadata.name", "a"), "spec.suspend", True))
    elsewhere = decode(changed(changed(NIGHTLY, "metadata.name", "a"), "metadata.namespace", "bank"))
    versions = [jobs.version]
    steps: list[Callable[[], None]] = [
        lambda: jobs.replace([a, b]),
        lambda: jobs.put(later),
        lambda: jobs.put(elsewhere),
        lambda: jobs.delete(a),
        lambda: jobs.delete(a),
        lambda: jobs.replace([b]),
    ]
    for step in steps:
        step()
        versions.append(jobs.version)
    assert heard == [(a, b), (later,), (elsewhere,), (b,)]
    assert len(set(versions)) == len(versions)
    assert jobs.all() == (b,) and len(jobs) == 1
    assert jobs.get("shop", "b") is b and jobs.get("shop", "a") is None and jobs.get("bank", "a") is None
