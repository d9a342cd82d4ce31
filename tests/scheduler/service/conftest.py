"""One application over made-up loops and a made-up scorer, with the routes of the job profile, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forecast.hot_share import HOT_SHARE
from kube.events.event_recorder import EventFigures
from kube.status.pod_condition_writer import ConditionFigures
from profiles.gpu.tide.tide_bodies import TIDE_BODIES
from profiles.gpu.tide.tide_report import NO_REPORT
from profiles.gpu.tide.tide_routes import tide_router
from profiles.job import jobs_plan_answers
from profiles.job.job_upkeep import jobs_router
from profiles.job.jobs_plan_answers import JobReports
from scheduler.scheduling_metrics import ReportFigures, SchedulingFigures, SchedulingGauges, SchedulingMetrics
from scheduler.service.scheduling_app import create_app
from serving.openapi_parts import bodies_of
from tenants import tenant_routes
from tenants.tenant_report import TenantsReport
from tenants.tenant_routes import tenants_router
from testing.app_client import AppClient
from tests.scheduler.service.simple_scheduling import SimpleScheduling, queued
from tests.scorer.service.fake_scorer import FakeScorer


@pytest.fixture
def scorer() -> FakeScorer:
    return FakeScorer(3)


@pytest.fixture
def scheduling() -> SimpleScheduling:
    made = SimpleScheduling()
    made.pods = [queued("cart-1"), queued("cart-2", priority=100), queued("search-1", namespace="web", part="gated")]
    return made


@pytest.fixture
def metrics() -> SchedulingMetrics:
    return SchedulingMetrics()


@pytest.fixture
def client(scorer: FakeScorer, scheduling: SimpleScheduling, metrics: SchedulingMetrics) -> Iterator[AppClient]:
    figures = SchedulingFigures(incoming=dict, throttled=lambda: 0)
    reports = ReportFigures(lambda: ConditionFigures(0, 0, 0, 0), lambda: EventFigures(0, 0, 0, 0))
    app = create_app(
        scorer,
        scheduling,
        metrics,
        collectors=[SchedulingGauges(scheduling.state), figures, reports],
        routers=[
            jobs_router(JobReports(clock=lambda: 0.0).plan),
            tide_router(lambda: NO_REPORT),
            tenants_router(lambda n_hours: TenantsReport(0.0)),
        ],
        bodies=(*bodies_of(jobs_plan_answers), *TIDE_BODIES, *bodies_of(tenant_routes)),
        hot=HOT_SHARE,
    )
    with AppClient(app) as client:
        yield client
