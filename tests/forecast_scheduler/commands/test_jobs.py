"""`jobs` asks a running scheduler and shows what it plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
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
from testing.servers.prometheus import free_port
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

NOW = 1_779_130_000.0
FULL = JobReports(
    clock=lambda: NOW,
    jobs=lambda: [
        PlannedJob(
            "batch", f"report-{n}", f"u-{n}", "CronJob/[red]", moment(NOW + 600 * n), None, 1200.0, "in the valley"
        )
        for n in range(3)
    ],
    demand=lambda: [DemandPoint(moment(NOW + 300), 300, 40, 20.0, 4e10)],
    storms=lambda: [StormReport(moment(NOW + 3600), moment(NOW + 4200), 300, 150, 3e11, 75, 1.5e11, "reserved")],
    providers=lambda: [ProviderReport("cheap", 2, 40, 20.0, 4e10, quota_pods=100, backs_off_until=moment(NOW + 30))],
    queues=lambda: [QueueShare("default", "batch/CronJob/report", "drf", 1.0, 0.25, 10, 20)],
)


def app_of(reports: JobReports, options: ScorerServiceOptions) -> Any:
    scorer = FakeScorer(1)
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, ()))
    return assembled("test", service, [jobs_router(reports.plan)], describe)


@pytest.fixture
def url() -> Iterator[str]:
    with served(app_of(FULL, ScorerServiceOptions())) as url:
        yield url


def test_a_scheduler_without_the_profile_is_told_what_it_lacks(capfd: pytest.CaptureFixture[str]) -> None:
    """Failed before: 404, and a word about /openapi.json."""
    options, scorer = ScorerServiceOptions(), FakeScorer(1)
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, ()))
    with served(assembled("test", service, [], describe)) as url:
        assert run(["jobs", "--server", url]) == 2
        said = capfd.readouterr().err
        assert f"{url} answered 404: it does not run the profile job" in said and "schedule.profiles" in said
        assert run(["tide", "--server", url]) == 2
        said = capfd.readouterr().err
        assert "does not run the profile gpu, or schedule.gpu.tide.enabled is not set there" in said


def test_nothing_to_show(capfd: pytest.CaptureFixture[str]) -> None:
    empty = JobReports(clock=lambda: NOW, no_forecast_because=lambda: "no model has been published")
    with served(app_of(empty, ScorerServiceOptions())) as url:
        assert run(["jobs", "--server", url]) == 0
    assert capfd.readouterr().out.strip() == "no job is held: no model has been published"


def test_tables_and_figures_of_jobs_at_the_port_of_the_settings(
    url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["jobs", "--server", url]) == 0
    text = capfd.readouterr().out
    for part in ("batch/report-0", "CronJob/[red]", "in the valley", "20 min", "40 of 100", "25.0%", "75.0 cores"):
        assert part in text
    assert "expected: 40 pods, most from 2026-05-18 18:51 on: 40 within 5 min, 20.0 cores" in text
    assert run(["jobs", "--server", url, "--limit", "1", "--json", "-"]) == 0
    figures = json.loads(capfd.readouterr().out)
    assert [job["name"] for job in figures["jobs"]] == ["report-0"]
    assert figures["total_jobs"] == 3
    assert run(["jobs", "--server", url, "--namespace", "shop", "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["jobs"] == []
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"schedule: {{serving: {{port: {url.rpartition(':')[2].rstrip('/')}}}}}\n")
    assert run(["jobs", "--config", str(settings), "--json", "-"]) == 0
    assert len(json.loads(capfd.readouterr().out)["jobs"]) == 3


def test_bad_input_is_one_sentence(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--server", f"http://127.0.0.1:{free_port()}"], "with --server URL"),
        (["--server", "nowhere"], "is not a URL"),
        (["--server", url, "--token-file", str(tmp_path / "none")], "token file"),
        (["--server", url + "/else"], "answered 404"),
    ):
        assert run(["jobs", *arguments]) == 2
        assert words in " ".join(capfd.readouterr().err.split())
