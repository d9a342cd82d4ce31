"""What docs/use/http-api.md and docs/use/scheduling.md say of the scheduling process is so."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from scheduler.scheduling_metrics import AttemptResult, SchedulingMetrics
from testing.app_client import AppClient
from tests.scheduler.service.simple_scheduling import SimpleScheduling
from tests.scorer.service.fake_scorer import FakeScorer

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
