"""Whole nights against a real Prometheus: some days of a cluster whose truth is known, and everything that breaks.

Each test runs the command line. The truth on disk and the back-filled server are made once for all of them.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from forecast.model import PeakModel
from forecast.model_artefact import ARRAYS, model_of
from forecast.published_models import Registry
from forecast_scheduler.cli import run
from testing.measured_cluster.cluster import Truth, build_truth
from testing.servers.bad_proxy import BadProxy
from testing.servers.lies import LIES
from testing.servers.prometheus import PrometheusServer, free_port
from trainer.history.files import read_history
from trainer.nightly import train_and_publish

# A week and some days on which a forecast can be judged; `make test-long` reads two weeks.
N_DAYS = 15 if settings.get_current_profile_name() == "long" else 10


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    start = datetime.now(UTC).date() - timedelta(days=N_DAYS)
    return build_truth(tmp_path_factory.mktemp("truth"), n_days=N_DAYS, start=start)


@pytest.fixture(scope="module")
def server(truth: Truth) -> Iterator[PrometheusServer]:
    with PrometheusServer(truth.blocks) as running:
        yield running


@pytest.fixture(scope="module")
def expected(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> PeakModel:
    """The model of the truth on disk."""
    models = tmp_path_factory.mktemp("models-of-truth")
    assert run(["train", "--history", str(truth.history), "--models", str(models)]) == 0
    return model_at(models)


def model_at(models: Path) -> PeakModel:
    return model_of(Registry(str(models)).load(), datetime.now(UTC))


def train(url: str, place: Path, *more: str, models: str = "m") -> int:
    return run(["train", "--prometheus", url, "--history", str(place / "h"), "--models", str(place / models), *more])


def alike(model: PeakModel, expected: PeakModel) -> None:
    """The same but for the seventh digit: node totals pass through other floating-point sums."""
    assert model.services == expected.services
    assert model.nodes == expected.nodes
    for spec in ARRAYS:
        if spec.name == "peak_weight_error":
            continue  # the standard error of a weight that is not identified is noise by itself
        found, wanted = getattr(model, spec.name), getattr(expected, spec.name)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6, err_msg=spec.name)


def files(place: Path) -> dict[str, bytes]:
    """Everything that is published there."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def first_night(
    server: PrometheusServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, object], str]:
    """Place, JSON report and metrics of one run on an empty place."""
    place = tmp_path_factory.mktemp("first-night")
    report, metrics = place / "report.json", place / "train.prom"
    assert train(server.url, place, "--json", str(report), "--metrics", str(metrics)) == 0
    return place, json.loads(report.read_text()), metrics.read_text()


def test_the_model_is_that_of_the_truth(
    first_night: tuple[Path, dict[str, object], str], truth: Truth, expected: PeakModel
) -> None:
    place, report, metrics = first_night
    alike(model_at(place / "m"), expected)
    assert {str(service) for service in expected.services} < set(truth.services)  # all but the DaemonSet
    assert len(truth.services) >= 20
    assert report["history"]["days"] == N_DAYS  # type: ignore[index]
    assert f"forecast_train_services {len(expected.services)}.0" in metrics


def test_what_was_read_gives_the_same_model_when_read_back(
    first_night: tuple[Path, dict[str, object], str], tmp_path: Path
) -> None:
    place = first_night[0]
    assert run(["train", "--history", str(place / "h"), "--models", str(tmp_path)]) == 0
    for spec in ARRAYS:
        np.testing.assert_array_equal(
            getattr(model_at(tmp_path), spec.name), getattr(model_at(place / "m"), spec.name), err_msg=spec.name
        )


def test_a_second_run_on_the_same_night_changes_nothing(
    first_night: tuple[Path, dict[str, object], str], server: PrometheusServer, capfd: pytest.CaptureFixture[str]
) -> None:
    place = first_night[0]
    before = files(place / "m")
    assert train(server.url, place) == 0
    assert "nothing new" in capfd.readouterr().out
    assert files(place / "m") == before


@pytest.mark.long
def test_a_history_that_grew_night_by_night_is_that_of_one_reading(
    server: PrometheusServer, tmp_path: Path, expected: PeakModel
) -> None:
    """The first run sees two days, the next all of them; then a day is lost and read again."""
    assert train(server.url, tmp_path, "--days", "2") == 0
    assert model_at(tmp_path / "m").trained_days < 7
    assert train(server.url, tmp_path, models="second") == 0
    alike(model_at(tmp_path / "second"), expected)
    lost = sorted((tmp_path / "h" / "usage.parquet").iterdir())[4]
    lost.unlink()
    assert train(server.url, tmp_path, models="third") == 0
    assert lost.exists()
    alike(model_at(tmp_path / "third"), expected)


@pytest.mark.long
def test_a_server_that_misbehaves_and_restarts_in_the_middle_gives_the_same_model(
    truth: Truth, tmp_path: Path, expected: PeakModel
) -> None:
    """Every seventeenth answer is bad in its own way, and the server is killed and started again on the way."""
    bad = ("422", "503", "text", "half", "slow", "drop")
    with PrometheusServer(truth.blocks) as own_server:
        restarted = threading.Event()

        def start_again() -> None:
            own_server.start()
            restarted.set()

        def behaviour(number: int, path: str) -> str:
            if number == 60:
                own_server.stop()
                threading.Timer(2.0, start_again).start()
            action = bad[number // 17 % len(bad)] if number % 17 == 16 else "pass"
            # Only a question about a range can be too large: the answer to 422 is to ask for less.
            return "503" if action == "422" and "query_range" not in path else action

        with BadProxy(own_server.url, behaviour) as proxy:
            assert train(proxy.url, tmp_path) == 0
            assert restarted.wait(30)
            assert len(proxy.requests) > 100
    alike(model_at(tmp_path / "m"), expected)


@pytest.mark.parametrize("seconds", [1.5, pytest.param(4.0, marks=pytest.mark.long)])
def test_a_run_that_is_killed_is_made_good_by_the_next(
    seconds: float, server: PrometheusServer, tmp_path: Path, expected: PeakModel
) -> None:
    command = [sys.executable, "-m", "forecast_scheduler", "train", "--prometheus", server.url]
    command += ["--history", str(tmp_path / "h"), "--models", str(tmp_path / "m")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert train(server.url, tmp_path) == 0  # the lease of a process that is gone does not keep it out
    alike(model_at(tmp_path / "m"), expected)


def test_a_run_that_is_told_to_stop_gives_its_lease_back(server: PrometheusServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "forecast_scheduler", "train", "--prometheus", server.url]
    command += ["--history", str(tmp_path / "h"), "--models", str(tmp_path / "m")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    leases = [tmp_path / place / "train-lease.json" for place in ("h", "m")]
    deadline = time.monotonic() + 60
    while not all(lease.exists() for lease in leases):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.terminate()
    assert process.communicate(timeout=60)[1].endswith("interrupted\n")
    assert process.returncode == 130
    assert not any(lease.exists() for lease in leases)


@pytest.mark.long
def test_a_damaged_day_of_the_history_is_read_again(
    first_night: tuple[Path, dict[str, object], str], server: PrometheusServer, tmp_path: Path, expected: PeakModel
) -> None:
    shutil.copytree(first_night[0] / "h", tmp_path / "h")
    days = sorted((tmp_path / "h" / "usage.parquet").iterdir())
    days[3].write_bytes(days[3].read_bytes()[:1000])
    (tmp_path / "h" / "nodes.parquet" / days[5].name).write_bytes(b"")
    (tmp_path / "h" / "pods.parquet" / days[7].name).unlink()
    assert train(server.url, tmp_path) == 0
    alike(model_at(tmp_path / "m"), expected)
    assert len(list((tmp_path / "h").rglob("*.damaged"))) == 2


@pytest.mark.long
def test_two_runs_at_once_are_one_run(server: PrometheusServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "forecast_scheduler", "train", "--prometheus", server.url]
    command += ["--history", str(tmp_path / "h"), "--models", str(tmp_path / "m")]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in runs]
    status = sorted(process.returncode for process in runs)
    if status == [0, 1]:
        assert sum("holds train-lease.json" in text for text in said) == 1
    else:  # the second began when the first was done
        assert status == [0, 0]
    assert len(Registry(str(tmp_path / "m")).versions()) == 1


def test_a_dead_server_is_told_in_one_line_and_the_model_stays(
    first_night: tuple[Path, dict[str, object], str], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = first_night[0]
    before = files(place / "m"), files(place / "h")
    config = tmp_path / "config.yaml"
    config.write_text("prometheus: {patience: 1s}\n")
    capfd.readouterr()
    assert train(f"http://127.0.0.1:{free_port()}", place, "--config", str(config)) == 2
    said = capfd.readouterr().err
    assert "cannot be reached" in said
    assert said.count("\n") == 1
    assert (files(place / "m"), files(place / "h")) == before


@pytest.mark.parametrize(
    ("lie", "first"), [("value null", 0), ("time 1e18", 60), ("value a number", 100), ("labels of numbers", 61)]
)
def test_a_server_that_lies_is_told_in_one_line_and_the_model_stays(
    lie: str,
    first: int,
    first_night: tuple[Path, dict[str, object], str],
    server: PrometheusServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(first_night[0] / "m", tmp_path / "m")
    before = files(tmp_path / "m")
    with BadProxy(server.url, lambda number, path: lie if number >= first else "pass", lies=LIES) as proxy:
        capfd.readouterr()
        assert train(proxy.url, tmp_path) == 2
    said = capfd.readouterr().err
    assert "answers query" in said and "the query is " in said and said.count("\n") == 1, said
    assert files(tmp_path / "m") == before


@pytest.mark.long
def test_a_server_that_dies_for_good_in_the_middle_leaves_what_was_read(
    truth: Truth, tmp_path: Path, capfd: pytest.CaptureFixture[str], expected: PeakModel
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("prometheus: {patience: 1s}\n")
    with PrometheusServer(truth.blocks) as own_server:

        def behaviour(number: int, path: str) -> str:
            if number == 90:
                own_server.stop()
            return "pass"

        with BadProxy(own_server.url, behaviour) as proxy:
            assert train(proxy.url, tmp_path, "--config", str(config)) == 2
            assert Registry(str(tmp_path / "m")).latest() is None
            days = list((tmp_path / "h" / "usage.parquet").iterdir())
            assert 0 < len(days) < N_DAYS
            own_server.start()
            assert train(proxy.url, tmp_path) == 0
    alike(model_at(tmp_path / "m"), expected)


def test_a_server_whose_scraping_stopped_days_ago_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start = datetime.now(UTC).date() - timedelta(days=6)
    with PrometheusServer(build_truth(tmp_path / "truth", n_days=2, start=start).blocks) as stale:
        assert train(stale.url, tmp_path) == 2
    said = capfd.readouterr().err
    assert "has no kube_pod_info within the last day" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.long
def test_the_next_night_is_gated_on_the_forecast_that_was_issued(
    truth: Truth, server: PrometheusServer, tmp_path: Path
) -> None:
    """The model of the night before comes from all but the last day; tonight it is held against that day."""
    known = read_history(make_history_until(truth, N_DAYS - 1, tmp_path / "yesterday"))
    last_night = known.calendar.midnight(known.days[-1] + timedelta(days=1)) + timedelta(hours=3)
    train_and_publish(known, Registry(str(tmp_path / "m"), clock=lambda: last_night), now=last_night)
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    assert train(server.url, tmp_path, "--json", str(report), "--report", str(page)) == 0
    figures = json.loads(report.read_text())
    for resource, verdict in figures["gate"]["resources"].items():
        # This cluster repeats itself week by week but for little noise: hardly anything is better than last week.
        last_week_is_better = "is not below the" in verdict["reason"] and "above the" not in verdict["reason"]
        assert verdict["verdict"] == "passed" or last_week_is_better, (resource, verdict["reason"])
        assert verdict["loss_ratio"] == pytest.approx(1.0, abs=0.02)  # the same recipe on the same days
        assert len(verdict["days"]) == 1
    assert figures["issued"][-1]["lead_days"] == 1
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    assert len(Registry(str(tmp_path / "m")).versions()) == 2


def make_history_until(truth: Truth, n_days: int, directory: Path) -> Path:
    """The truth without its last days."""
    directory.mkdir()
    end = pd.Timestamp(truth.start + timedelta(days=n_days), tz="UTC")
    for file in truth.history.iterdir():
        if file.name in ("usage.parquet", "nodes.parquet"):
            table = pd.read_parquet(file)
            table[table.timestamp < end].to_parquet(directory / file.name)
        else:
            (directory / file.name).write_bytes(file.read_bytes())
    return directory
