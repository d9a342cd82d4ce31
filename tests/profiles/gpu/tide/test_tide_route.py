"""GET /v1/tide and the command's tables: the plan as it was reported, cut to what was asked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from forecast_scheduler.reports.scheduler_tables import tide_lines, tide_report_tables
from profiles.gpu.tide.tide_bodies import TIDE_BODIES
from profiles.gpu.tide.tide_metrics import TideMetrics
from profiles.gpu.tide.tide_report import NO_REPORT, TideReport
from profiles.gpu.tide.tide_routes import tide_router
from scorer.service.app import assembled
from scorer.service.scorer_openapi import describe
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from scorer.service.scorer_state import ScorerService
from testing.app_client import AppClient
from tests.profiles.gpu.tide.tide_api import FakeApi, workload
from tests.profiles.gpu.tide.tide_world import World, inference, trainer
from tests.scorer.service.fake_scorer import FakeScorer

REPORTS = [NO_REPORT]


@pytest.fixture(scope="module")
def report() -> TideReport:
    api = FakeApi(workload("StatefulSet", "train", 2, annotations={"min-replicas": "1", "max-replicas": "many"}))
    pods = [*(inference(n, "node-0") for n in range(4)), *(trainer(n, "node-1") for n in range(2))]
    world = World(api, 16.0, pods=pods)
    api.named("train")["metadata"]["annotations"]["forecast-scheduler.io/max-replicas"] = "8"
    world.tide.step()
    return world.tide.report


@pytest.fixture
def client(report: TideReport) -> Iterator[AppClient]:
    scorer, options = FakeScorer(1), ScorerServiceOptions()
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, ()))

    def document(app: Any, *, with_tokens: bool) -> dict[str, Any]:
        return describe(app, with_tokens=with_tokens, more=TIDE_BODIES)

    REPORTS[:] = [report]
    with AppClient(assembled("test", service, [tide_router(lambda: REPORTS[0])], document)) as client:
        yield client


def test_all_of_it_is_told(client: AppClient) -> None:
    told = client.get("/v1/tide").json()
    (pool,), (training,), (move,) = told["pools"], told["trainings"], told["moves"]
    assert (pool["pool"], pool["capacity_gpus"], pool["inference_gpus"]) == ("A100", 16, 4)
    assert len(pool["ahead"]) == 49 and pool["ahead"][0]["start"] == "2026-05-19T16:00:00Z"
    assert [point["needed_gpus"] for point in pool["ahead"][2:5]] == [4, 10, 10]
    assert training["training"] == "lab/StatefulSet/train" and training["max_replicas"] == 8
    assert (move["kind"], move["before"], move["after"], move["outcome"]) == ("grow", 2, 6, "done")
    assert [(one["kind"], one["after"]) for one in told["ahead"]] == [("shrink", 3), ("grow", 6)]
    assert told["no_forecast_because"] is None and told["writes_nothing_because"] is None


def test_tables_of_the_command(client: AppClient) -> None:
    told = client.get("/v1/tide").json()
    console = Console(width=220, file=io.StringIO())
    for table in tide_report_tables(told):
        console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "A100: 16 GPUs, now 4 inference, 4 training" in shown and "Moves ahead" in shown
    assert "lab/StatefulSet/train" in shown and "inference is predicted to leave" in shown
    empty = told | {"pools": [], "no_forecast_because": "no model", "unread": {"jobs": "403"}}
    assert list(tide_lines(empty)) == ["no training grows: no model", "no node has GPUs", "jobs: 403"]


DOC = (Path(__file__).parents[4] / "docs" / "use" / "tide.md").read_text()


def test_every_metric_is_in_the_doc() -> None:
    names = set()
    for collector in TideMetrics().collectors:
        for metric in collector.describe() if hasattr(collector, "describe") else collector.collect():
            names.add(metric.name + ("_total" if metric.type == "counter" else ""))
    assert names and {name for name in names if f"`{name}" not in DOC} == set()
