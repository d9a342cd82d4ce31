"""What a scrape would find after a run."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from base.errors import InputError
from base.object_store import TEMPORARY
from forecast.backtest import BacktestScore
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict
from trainer.run_metrics import RunFigures, push, registry_of, write_textfile

GATE = GateReport(
    {
        "cpu": GateResult(
            "cpu",
            GateVerdict.PASSED,
            "passed",
            candidate=BacktestScore(0.03, 0.01, 0.94, 96),
            current=BacktestScore(0.06, 0.02, 0.9, 96),
        ),
        "log": GateResult("log", GateVerdict.HELD_BACK, "held back", held_back_nights=1),
    }
)
FIGURES = RunFigures(
    finished=1_780_000_000.0,
    stage_seconds={"read": 12.5, "fit": 30.0},
    history_days=28,
    services=48,
    nodes=50,
    gate=GATE,
    issued_coverage={"cpu": 0.96, "log": float("nan")},
    identified_load_share={"cpu": 0.8},
    gap_slots={"cpu": 3, "disk": 0},
    expected_slots={"cpu": 96, "disk": 96},
    findings=("wrong times",),
)

Sample = tuple[str, tuple[tuple[str, str], ...]]


def samples_in(text: str) -> dict[Sample, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@contextmanager
def recording_server(status: int = 202) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """A real server that answers every PUT with `status` and notes method, path and body."""
    requests: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            requests.append((self.command, self.path, body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_textfile_holds_every_figure_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "collector" / "forecast.prom"
    write_textfile(path, FIGURES)
    assert samples_in(path.read_text()) == {
        ("forecast_train_candidate_loss", (("quantile", "0.5"), ("resource", "cpu"))): 0.03,
        ("forecast_train_candidate_loss", (("quantile", "0.95"), ("resource", "cpu"))): 0.01,
        ("forecast_train_issued_coverage", (("resource", "cpu"),)): 0.96,
        ("forecast_train_issued_loss_ratio", (("resource", "cpu"),)): pytest.approx(0.5),
        ("forecast_train_held_back", (("resource", "cpu"),)): 0.0,
        ("forecast_train_held_back", (("resource", "log"),)): 1.0,
        ("forecast_train_findings", (("finding", "wrong times"),)): 1.0,
        ("forecast_train_left_out", (("resource", "cpu"),)): 0.0,
        ("forecast_train_left_out", (("resource", "log"),)): 0.0,
        ("forecast_train_bound_widening_ratio", (("resource", "cpu"),)): 1.0,
        ("forecast_train_bound_widening_ratio", (("resource", "log"),)): 1.0,
        ("forecast_train_identified_load_share", (("resource", "cpu"),)): 0.8,
        ("forecast_train_data_gap_slots", (("resource", "cpu"),)): 3.0,
        ("forecast_train_data_gap_slots", (("resource", "disk"),)): 0.0,
        ("forecast_train_data_expected_slots", (("resource", "cpu"),)): 96.0,
        ("forecast_train_data_expected_slots", (("resource", "disk"),)): 96.0,
        ("forecast_train_duration_seconds", (("stage", "read"),)): 12.5,
        ("forecast_train_duration_seconds", (("stage", "fit"),)): 30.0,
        ("forecast_train_history_days", ()): 28.0,
        ("forecast_train_services", ()): 48.0,
        ("forecast_train_nodes", ()): 50.0,
        ("forecast_train_last_success_timestamp_seconds", ()): 1_780_000_000.0,
    }
    assert [entry.name for entry in path.parent.iterdir()] == ["forecast.prom"]


def test_a_first_run_has_no_losses_and_no_success_before_it_succeeded() -> None:
    names = {sample.name for family in registry_of(RunFigures()).collect() for sample in family.samples}
    assert names == {"forecast_train_history_days", "forecast_train_services", "forecast_train_nodes"}


def test_a_textfile_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "forecast.prom").mkdir()
    with pytest.raises(InputError, match=r"metrics file .*forecast\.prom cannot be written"):
        write_textfile(tmp_path / "forecast.prom", FIGURES)
    assert [entry.name for entry in tmp_path.iterdir()] == ["forecast.prom"]


def test_what_killed_runs_left_beside_the_textfile_goes(tmp_path: Path) -> None:
    """Failed before: each kill left a file of its own name for ever."""
    left = tmp_path / f"{TEMPORARY}left"
    left.write_text("half")
    os.utime(left, times=(0, 0))
    write_textfile(tmp_path / "forecast.prom", FIGURES)
    assert [entry.name for entry in tmp_path.iterdir()] == ["forecast.prom"]


def test_a_pushgateway_gets_one_put_for_the_job() -> None:
    with recording_server() as (url, requests):
        assert push(url, FIGURES)
    [(method, path, body)] = requests
    assert (method, path) == ("PUT", "/metrics/job/forecast_scheduler_train")
    assert samples_in(body)["forecast_train_history_days", ()] == 28.0


@pytest.mark.parametrize("status", [400, 500])
def test_a_push_that_is_refused_is_a_warning(status: int, caplog: pytest.LogCaptureFixture) -> None:
    with recording_server(status) as (url, _), caplog.at_level(logging.WARNING):
        assert not push(url, FIGURES)
    assert [record.message for record in caplog.records] == ["the Pushgateway did not accept the metrics"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "ftp://127.0.0.1:9", "http://[", "http://no such host"])
def test_a_pushgateway_that_cannot_be_reached_is_a_warning(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert not push(url, FIGURES, timeout=2)
    assert len(caplog.records) == 1


def test_a_failed_run_does_not_push_away_the_last_success() -> None:
    with recording_server() as (url, requests):
        assert not push(url, RunFigures())
    assert requests == []
