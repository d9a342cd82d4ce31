"""`train` writes the page of predicted against actual peaks, and a page that fails never fails the night."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecast_scheduler.cli import run
from forecast_scheduler.commands.train_night import write_peaks_report
from tests.forecast_scheduler.small_history import small_tables

PAGE = "FORECAST_SCHEDULER_TRAIN__PEAKS_REPORT"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_tables(9).write(tmp_path_factory.mktemp("nightly") / "history")


def test_a_page_that_cannot_be_written_is_a_note(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "train.prom"
    monkeypatch.setenv(PAGE, str(tmp_path / "nowhere" / "report.html"))
    arguments = ["train", "--history", str(history), "--models", str(tmp_path / "models"), "--metrics", str(metrics)]
    assert run(arguments) == 0
    said = capfd.readouterr()
    assert "published" in said.out
    assert "was not written, the model is published all the same: report ended with status 2" in said.err
    assert "forecast_train_peaks_report_written 0.0" in metrics.read_text()


def test_the_page_is_written_if_it_can_be_and_never_from_an_object_store(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page, metrics = tmp_path / "report.html", tmp_path / "train.prom"
    monkeypatch.setenv(PAGE, str(page))
    arguments = ["train", "--history", str(history), "--models", str(tmp_path / "models"), "--metrics", str(metrics)]
    assert run(arguments) == 0
    assert f"peaks report: {page}" in capfd.readouterr().out
    assert "<html" in page.read_text()
    assert "forecast_train_peaks_report_written 1.0" in metrics.read_text()
    why = write_peaks_report(tmp_path / "report.html", history="s3://bucket/history", models="s3://bucket", config=None)
    assert why is not None
    assert "made from a history directory" in why
