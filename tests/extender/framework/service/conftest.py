"""One application over made-up loops and a made-up scorer, with the routes of the job profile, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.framework.figures import SchedulingFigures
from extender.framework.metrics import SchedulingGauges, SchedulingMetrics
from extender.framework.reporting.condition_writer import ConditionFigures
from extender.framework.reporting.scheduling_events import SchedulingEventFigures
from extender.framework.service.app import create_app
from extender.gpu.tide.report import NO_REPORT
from extender.gpu.tide.service.bodies import TIDE_BODIES
from extender.gpu.tide.service.routes import tide_router
from extender.job.service.answers import JobReports
from extender.job.service.bodies import JOB_BODIES
from extender.job.service.routes import jobs_router
from tests.extender.framework.service.simple_scheduling import SimpleScheduling, queued
from tests.scorer.service.app_client import AppClient
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
    figures = SchedulingFigures(
        incoming=dict,
        throttled=lambda: 0,
        conditions=lambda: ConditionFigures(0, 0, 0, 0),
        events=lambda: SchedulingEventFigures(0, 0, 0, 0),
    )
    app = create_app(
        scorer,
        scheduling,
        metrics,
        collectors=[SchedulingGauges(scheduling.state), figures],
        routers=[jobs_router(JobReports(clock=lambda: 0.0).plan), tide_router(lambda: NO_REPORT)],
        bodies=(*JOB_BODIES, *TIDE_BODIES),
    )
    with AppClient(app) as client:
        yield client
