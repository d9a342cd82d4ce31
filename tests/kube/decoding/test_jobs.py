"""Jobs as the API server writes them: whose run, how far, when it began and ended."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from forecast.service_key import ServiceKey
from kube.decoding.decoding import WATCHED, Kind, decode_object
from kube.decoding.jobs import JobInfo, JobOutcome
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from tests.kube.api_json import changed

OWNER = {"kind": "CronJob", "name": "report", "uid": "c", "apiVersion": "batch/v1", "controller": True}
RUN: dict[str, Any] = {
    "metadata": {
        "name": "report-29000000",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T01:00:00Z",
        "ownerReferences": [OWNER],
    },
    "spec": {
        "parallelism": 2,
        "completions": 3,
        "completionMode": "Indexed",
        "activeDeadlineSeconds": 600,
        "suspend": True,
        "template": {
            "metadata": {"annotations": {"forecast-scheduler.io/expected-run": "5m"}},
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}], "priority": 7},
        },
    },
    "status": {"startTime": "2026-11-21T01:00:02Z", "active": 2, "ready": 1, "succeeded": 1, "failed": 4},
}


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def decode(manifest: dict[str, Any]) -> JobInfo:
    job = decode_object(Kind.JOBS, json.dumps(manifest).encode())[0]
    assert isinstance(job, JobInfo)
    return job


def test_one_under_way() -> None:
    run = decode(RUN)
    assert run == JobInfo(
        namespace="shop",
        name="report-29000000",
        uid="u1",
        service=ServiceKey("shop", "CronJob", "report"),
        created=seconds("2026-11-21T01:00:00Z"),
        started=seconds("2026-11-21T01:00:02Z"),
        suspended=True,
        parallelism=2,
        completions=3,
        completion_mode="Indexed",
        active_deadline_seconds=600,
        template=run.template,
        active=2,
        ready=1,
        succeeded=1,
        failed=4,
    )
    assert (run.requests, run.scheduler_name, run.pods_at_once) == ({"cpu": 1.0}, "default-scheduler", 2)
    assert run.annotations == {"forecast-scheduler.io/expected-run": "5m"} and run.template.priority == 7


@pytest.mark.parametrize(
    ("owners", "service"),
    [
        (None, "Job/report-29000000"),
        ([OWNER | {"controller": False}], "Job/report-29000000"),
        ([OWNER], "CronJob/report"),
        ([OWNER | {"kind": "JobSet", "name": "train"}], "JobSet/train"),
    ],
)
def test_whose_run_it_is(owners: list[Any] | None, service: str) -> None:
    assert decode(changed(RUN, "metadata.ownerReferences", owners)).service.service == service


THEN, LATER = "2026-11-21T01:20:00Z", "2026-11-21T01:20:05Z"


@pytest.mark.parametrize(
    ("status", "outcome", "finished"),
    [
        ({}, None, None),
        ({"conditions": [{"type": "Suspended", "status": "True", "lastTransitionTime": THEN}]}, None, None),
        ({"conditions": [{"type": "Complete", "status": "False", "lastTransitionTime": THEN}]}, None, None),
        ({"conditions": [{"type": "FailureTarget", "status": "True", "lastTransitionTime": THEN}]}, None, None),
        ({"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": THEN}]}, JobOutcome.FAILED, THEN),
        (
            {
                "completionTime": THEN,
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": THEN},
                    {"type": "Complete", "status": "True", "lastTransitionTime": LATER},
                ],
            },
            JobOutcome.COMPLETE,
            THEN,
        ),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, JobOutcome.COMPLETE, None),
    ],
)
def test_how_and_when_it_ended(status: dict[str, Any], outcome: JobOutcome | None, finished: str | None) -> None:
    run = decode(changed(RUN, "status", status))
    assert (run.outcome, run.finished) == (outcome, None if finished is None else seconds(finished))


def test_what_go_writes_for_nothing_is_nothing() -> None:
    bare = decode({"metadata": {"name": "x"}})
    assert bare == JobInfo("default", "x", "default/x", ServiceKey("default", "Job", "x"))
    fields = ["startTime", "completionTime", "active", "ready", "succeeded", "failed", "conditions"]
    null = {"metadata": {"name": "x"}, "spec": {"template": None}, "status": dict.fromkeys(fields)}
    assert decode(null) == decode({"metadata": {"name": "x"}, "spec": None, "status": None}) == bare


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.ownerReferences", [OWNER | {"kind": "a/b"}]),
        ("spec.completions", 2**40),
        ("spec.template.spec", []),
        ("status.startTime", "soon"),
        ("status.failed", "all"),
    ],
)
def test_one_that_cannot_be_read_costs_only_itself(path: str, value: Any) -> None:
    odd = changed(RUN, path, value)
    with pytest.raises(UndecodableObject, match=r"^Job.* cannot be read: "):
        decode(odd)
    page = decode_page(WATCHED[Kind.JOBS], json.dumps({"items": [odd, RUN]}).encode())
    assert page.objects == [decode(RUN)] and len(page.undecodable) == 1
