"""GET /v1/jobs/plan: what was reported, cut to what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from profiles.job import jobs_plan_answers
from profiles.job.job_upkeep import jobs_router
from profiles.job.jobs_plan_answers import (
    DemandPoint,
    JobReports,
    PlannedJob,
    ProviderReport,
    StormReport,
)
from scheduler.scheduling_answers import QueueShare, moment
from scorer.service.app import assembled
from scorer.service.scorer_openapi import describe
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from scorer.service.scorer_state import ScorerService
from serving.openapi_parts import bodies_of
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer

NOW = 1_779_130_000.0


def planned(name: str, *, hours: float = 1.0, namespace: str = "batch", due: float | None = None) -> PlannedJob:
    start, latest = moment(NOW + 3600 * hours), None if due is None else moment(due)
    return PlannedJob(namespace, name, f"uid-{name}", "CronJob/report", start, latest, 600.0, "in the valley")


REPORTS = JobReports(
    clock=lambda: NOW,
    jobs=lambda: [
        planned("late", hours=20),
        planned("soon", hours=0.5, due=NOW + 7200),
        planned("odd", hours=3, due=1e300),
        planned("other", namespace="shop"),
    ],
    demand=lambda: [DemandPoint(moment(NOW + 300 * n), 300, n, 2.0 * n, 1e9 * n) for n in range(48)],
    storms=lambda: [
        StormReport(
            moment(NOW + 3600), moment(NOW + 4200), 300, 150, 3e11, 75, 1.5e11, "reserved", ("batch/CronJob/report",)
        )
    ],
    providers=lambda: [ProviderReport("cheap", 2, 40, 20.0, 4e10, quota_pods=100, backs_off_until=moment(NOW + 30))],
    queues=lambda: [QueueShare("default", "batch/CronJob/report", "drf", 1.0, 0.25, 10, 20)],
)


@pytest.fixture
def client() -> Iterator[AppClient]:
    scorer, options = FakeScorer(1), ScorerServiceOptions()
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, ()))

    def document(app: Any, *, with_tokens: bool) -> dict[str, Any]:
        return describe(app, with_tokens=with_tokens, more=bodies_of(jobs_plan_answers))

    with AppClient(assembled("test", service, [jobs_router(REPORTS.plan)], document)) as client:
        yield client


def test_all_of_it_is_told(client: AppClient) -> None:
    told = client.get("/v1/jobs/plan?hours=1").json()
    assert told["no_forecast_because"] is None
    assert told["jobs"][0]["latest_start"] == "2026-05-18T20:46:40Z"
    assert told["jobs"][0]["why"] == "in the valley"
    assert len(told["demand"]) == 13
    assert told["storms"][0]["reserved_cpu_cores"] == 75
    assert told["providers"][0]["quota_pods"] == 100
    assert told["providers"][0]["quota_cpu_cores"] is None
    assert told["queues"][0]["share"] == 0.25


def test_a_latest_start_that_no_calendar_has(client: AppClient) -> None:
    latest = {job["name"]: job["latest_start"] for job in client.get("/v1/jobs/plan").json()["jobs"]}
    assert latest["odd"].startswith("9999-")
    assert latest["late"] is None


@pytest.mark.parametrize("query", ["?hours=0", "?hours=169", "?hours=nan", "?limit=0", "?limit=many"])
def test_what_cannot_be_asked(client: AppClient, query: str) -> None:
    assert client.get(f"/v1/jobs/plan{query}").status_code == 422
