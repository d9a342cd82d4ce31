"""Requests made from the OpenAPI document, well-formed and not: every answer is as documented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from forecast.hot_share import HOT_SHARE
from scheduler.scheduling_metrics import SchedulingMetrics
from scheduler.service.scheduling_app import create_app
from tests.scheduler.service.simple_scheduling import SimpleScheduling, queued
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

CHECKS: Any = [not_a_server_error, status_code_conformance, response_schema_conformance]
OURS = ("/v1/queue", "/v1/status", "/healthz", "/readyz")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    scheduling = SimpleScheduling()
    scheduling.pods = [queued("cart-1")]
    with served(create_app(FakeScorer(2), scheduling, SchedulingMetrics(), hot=HOT_SHARE)) as url:
        yield url


def test_our_routes_answer_as_documented(url: str) -> None:
    asked = set()
    api: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in api.get_all_operations():
        operation = found.ok()
        if operation.path not in OURS:
            continue
        for mode in GenerationMode if operation.query else [GenerationMode.POSITIVE]:

            @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                asked.add(case.operation.path)
                case.call_and_validate(checks=CHECKS)

            ask()
    assert asked == set(OURS)
