"""Whole nights against a real Prometheus: some days of a cluster whose truth is known, and everything that breaks.

Each test runs the command line. The truth on disk and the back-filled server are made once for all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from forecast.model import PeakModel
from forecast.model_artefact import ARRAYS, model_of
from forecast.published_models import Registry
from forecast_scheduler.cli import run
from testing.measured_cluster.cluster import Truth, build_truth
from testing.servers.prometheus import PrometheusServer, free_port
from trainer.run_lease import LOCK_FILE, hold_lease

N_DAYS = 10  # a week and some days on which a forecast can be judged


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


def train(url: str, place: Path, *more: str) -> int:
    return run(["train", "--prometheus", url, "--history", str(place / "h"), "--models", str(place / "m"), *more])


def started(url: str, place: Path) -> subprocess.Popen[str]:
    """The same as a process of its own."""
    command = [sys.executable, "-m", "forecast_scheduler", "train", "--prometheus", url]
    command += ["--history", str(place / "h"), "--models", str(place / "m")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


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


def test_a_run_that_is_told_to_stop_gives_its_lease_back(server: PrometheusServer, tmp_path: Path) -> None:
    process = started(server.url, tmp_path)
    places = [tmp_path / place for place in ("h", "m")]
    deadline = time.monotonic() + 60
    while not all((place / LOCK_FILE).exists() for place in places):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.terminate()
    assert process.communicate(timeout=60)[1].endswith("interrupted\n")
    assert process.returncode == 130
    for place in places:
        with hold_lease(str(place)) as check:
            check()


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
