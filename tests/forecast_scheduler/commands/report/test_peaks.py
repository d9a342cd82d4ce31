"""`report` about peaks, from a history and trained models to the page; and what it says when something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from base.progress import silent
from forecast_scheduler.cli import run
from forecast_scheduler.commands.demo import evening_scorer
from forecast_scheduler.commands.demo.demo_command import serve_last_evening
from forecast_scheduler.commands.history_directory import open_history
from forecast_scheduler.commands.shell import open_shell
from forecast_scheduler.settings.document import Settings
from tests.forecast_scheduler.commands.report.test_command import decided, write_log
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening
from tests.forecast_scheduler.small_history import small_tables


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


def command(evening: Evening, *more: str) -> list[str]:
    return ["report", "--history", str(evening.history), "--models", str(evening.models), *more]


def test_page_figures_and_tables_of_a_trained_cluster(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page, file = tmp_path / "peaks.html", tmp_path / "peaks.json"
    assert run(command(evening, "--html", str(page), "--json", str(file))) == 0
    said = capfd.readouterr().out
    assert "Hottest nodes on 2026-10-14" in said and "past 9 days: 7 none, 2 rehearsed" in said
    peaks = json.loads(file.read_text())["peaks"]
    assert peaks["coming"]["day"] == "2026-10-14" and peaks["coming"]["nodes_predicted"] == 2
    assert [day["origin"] for day in peaks["days"]].count("rehearsed") == 2
    assert 0 < peaks["days"][-1]["error"]["cpu"] < 0.2
    assert peaks["adoption"] is None
    html = page.read_text()
    assert html.count("plotly.js v") == 1 and "http-equiv" in html and f"report: {page.resolve()}" in said


def test_without_a_rehearsal_nothing_is_fitted_and_decisions_share_the_page(
    evening: Evening, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(command(evening, "--no-rehearse", "--json", "-")) == 0
    peaks = json.loads(capfd.readouterr().out)["peaks"]
    assert {day["origin"] for day in peaks["days"]} == {"none"} and peaks["service_days"] == []
    page, file = tmp_path / "both.html", tmp_path / "both.json"
    at = small_tables(1).usage["timestamp"].max()
    log = write_log(tmp_path / "log", decided("cart-0", "node-0", "node-0", at, is_shadow=False))
    more = ("--decisions", log, "--no-rehearse", "--html", str(page), "--json", str(file))
    assert run(command(evening, *more)) == 0
    figures = json.loads(file.read_text())
    assert set(figures) == {"decisions", "peaks"} and figures["peaks"]["adopted"] == "2026-10-05"
    html = page.read_text()
    assert "What was advised, and what kube-scheduler did" in html and "Hottest nodes" in html
    assert html.count("<h1>") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to report on"),
        (
            ["--history", "{history}", "--models", "{tmp}/none", "--html", "{tmp}/page.html"],
            "no model has been published",
        ),
        (["log.jsonl", "--history", "{history}"], "without --decisions"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    arguments: list[str], sentence: str, evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"tmp": tmp_path, "history": evening.history, "models": evening.models}
    filled = [argument.format(**places, empty=tmp_path / "empty") for argument in arguments]
    assert run(["report", *filled]) == 2
    said = [line for line in capfd.readouterr().err.splitlines() if not line.startswith("reading ")]  # a slow disk's
    assert len(said) == 1 and sentence in said[0]
    assert not (tmp_path / "page.html").exists()


def test_the_demo_writes_it_for_the_scorers_page(
    evening: Evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(evening_scorer, "serve_evening", lambda settings, evening, **options: served.append(settings))
    # What comes before it has a test of its own (test_commands.py) and takes a dozen fits.
    shell = open_shell(None)
    files = open_history(shell.settings, evening.history, silent)
    serve_last_evening(shell, files, files.history(), evening.history, tmp_path, None)
    page = served[0].scorer.report
    assert page == tmp_path / "peaks.html" and 'id="peaks"' in page.read_text()
    assert str(page.resolve()) in capfd.readouterr().out
