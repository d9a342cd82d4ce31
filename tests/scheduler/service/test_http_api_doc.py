"""What docs/use/http-api.md and docs/use/scheduling.md say of the scheduling process is so."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from scheduler.metrics import AttemptResult, SchedulingMetrics
from scheduler.service.app import create_app
from testing.app_client import AppClient
from tests.scheduler.service.simple_scheduling import SimpleScheduling, queued
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

DOCS = Path(__file__).parents[3] / "docs"
SCORERS, _, PAGE = (DOCS / "use" / "http-api.md").read_text().partition("\n## The scheduling process\n")
ELSEWHERE = ("forecast_overcommit", "forecast_pod_group", "forecast_colocation", "forecast_decision")
"""Metrics of parts that are only there in a whole process; their own tests look at them."""


def _addresses() -> list[str]:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    return [shlex.split(line)[2].removeprefix("$SCHEDULER") for line in block.splitlines()]


def test_every_example_runs_and_the_answer_shown_is_the_answer(client: AppClient, scheduling: SimpleScheduling) -> None:
    first, *others = _addresses()
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    assert client.get(first).json() == json.loads(shown)
    for address in others:
        assert client.get(address).status_code == 200


def test_every_metric_is_in_the_table(client: AppClient, metrics: SchedulingMetrics, scorer: FakeScorer) -> None:
    metrics.attempt(AttemptResult.SCHEDULED, "forecast-scheduler")
    text = (DOCS / "use" / "scheduling.md").read_text()
    table = set(re.findall(r"^\| `(forecast_\w+)[`{]", text, flags=re.MULTILINE))
    exported = set(re.findall(r"^# TYPE (forecast_\w+) ", client.get("/metrics").text, flags=re.MULTILINE))
    scorers = set(re.findall(r"^\| `(forecast_\w+)`", SCORERS, flags=re.MULTILINE))
    ours = {name for name in exported if not name.endswith("_created")} - scorers
    assert ours - table == set()
    assert {name for name in table - ours - scorers if not name.startswith(ELSEWHERE)} == set()


CHECKS: Any = [not_a_server_error, status_code_conformance, response_schema_conformance]
OURS = ("/v1/queue", "/v1/status", "/healthz", "/readyz")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    scheduling = SimpleScheduling()
    scheduling.pods = [queued("cart-1")]
    with served(create_app(FakeScorer(2), scheduling, SchedulingMetrics())) as url:
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
