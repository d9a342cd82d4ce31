"""The commands from beginning to end on a small history: what they print, what they write, and where."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forecast.artefact import Artefact
from forecast.published_models import Registry
from forecast.signature import new_key_pair
from forecast_scheduler.cli import run
from tests.forecast_scheduler.small_history import small_tables


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen days: a week to learn from, one to play back, and the day on which it begins."""
    return small_tables(16).write(tmp_path_factory.mktemp("small") / "history")


def test_train_publishes_and_models_lists_and_rolls_back(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    models = str(tmp_path / "models")
    for _ in range(2):
        assert run(["train", "--history", str(history), "--models", models]) == 0
    said = capfd.readouterr()
    assert "3 services, 2 nodes, learned from 16 days, forecasts from 2026-10-21 on" in said.out
    first, second = Registry(models).versions()

    assert run(["models", "list", "--models", models]) == 0
    rows = [line.strip("│ ").split()[:2] for line in capfd.readouterr().out.splitlines() if line.startswith("│")]
    assert [row[0] for row in rows] == [first, "*"] and rows[1] == ["*", second]
    assert run(["models", "rollback", "--models", models]) == 0
    assert Registry(models).latest() == first
    assert run(["models", "rollback", second, "--models", models]) == 0
    assert Registry(models).latest() == second
    capfd.readouterr()
    assert run(["models", "rollback", "no-such-version", "--models", models]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert Registry(models).latest() == second

    sound = Registry(models).load()
    base = (sound.arrays["node_capacity"][:, :, None, None] * 1.07 + sound.arrays["node_base"] * 0).astype(np.float32)
    impossible = Registry(models).publish(Artefact(sound.manifest, {**sound.arrays, "node_base": base}))
    assert run(["models", "rollback", second, "--models", models]) == 0
    capfd.readouterr()
    assert run(["models", "rollback", impossible, "--models", models]) == 2
    assert "is not possible: node_base is" in capfd.readouterr().err
    assert Registry(models).latest() == second


def test_models_are_signed_with_the_configured_key_and_others_refused(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    private, public = new_key_pair()
    (tmp_path / "private.pem").write_bytes(private)
    (tmp_path / "public.pem").write_bytes(public)
    config = tmp_path / "config.yaml"
    config.write_text(
        f"history: {history}\n"
        "models:\n"
        f"  location: {tmp_path / 'models'}\n"
        f"  private_key: {tmp_path / 'private.pem'}\n"
        f"  public_key: {tmp_path / 'public.pem'}\n"
    )
    assert run(["train", "--config", str(config)]) == 0
    signed = Registry(str(tmp_path / "models")).latest()
    assert signed is not None
    # A model by somebody without the key is published beside it, and refused by whoever knows the public key.
    assert run(["train", "--history", str(history), "--models", str(tmp_path / "models")]) == 0
    unsigned = Registry(str(tmp_path / "models")).latest()
    assert unsigned not in (None, signed)
    capfd.readouterr()
    assert run(["models", "rollback", str(unsigned), "--config", str(config)]) == 2
    assert "no signature" in capfd.readouterr().err
    assert run(["models", "rollback", signed, "--config", str(config)]) == 0


def test_backtest_prints_a_table_and_writes_the_agreed_json(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "backtest.json"
    assert run(["backtest", "--history", str(history), "--json", str(file)]) == 0
    figures = json.loads(file.read_text())
    assert set(figures["resources"]) == {"cpu", "memory", "disk", "network", "log"}
    for resource in figures["resources"].values():
        assert set(resource) >= {"forecast-scheduler", "baselines", "components"}
        assert set(resource["forecast-scheduler"]) == {"loss50", "loss95", "coverage95", "n"}
        assert len(resource["baselines"]) >= 8
    assert set(figures["node_coverage95"]["cpu"]) == {"coverage", "n"}
    said = capfd.readouterr().out
    for name in figures["resources"]["cpu"]["baselines"]:
        assert name in said


def test_replay_prints_tables_and_writes_json_and_a_report_that_needs_no_network(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, report = tmp_path / "replay.json", tmp_path / "report.html"
    assert run(["replay", "--history", str(history), "--json", str(file), "--report", str(report)]) == 0
    figures = json.loads(file.read_text())
    assert list(figures["rules"]) == ["native", "live", "last_week", "forecast", "oracle"]
    for rule in figures["rules"].values():
        assert set(rule) >= {"hot_share", "peak_cv", "p99_peak"}
    assert set(figures["gap_closed"]) == {"hot_share", "peak_cv"}
    page = report.read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert '<script src="http' not in page
    assert '<link href="http' not in page
    said = capfd.readouterr().out
    assert "last_week" in said
    assert str(report.resolve()) in said


def test_replay_places_by_settings_that_differ_from_the_defaults(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, config, policies = tmp_path / "replay.json", tmp_path / "config.yaml", tmp_path / "policies.yaml"
    policies.write_text("policies: {stack: {scores: {weights: {most_allocated: 1}}}}\ndefault: stack\n")
    command = ["replay", "--history", str(history), "--json", str(file), "--days", "1", "--config", str(config)]
    for text, is_there in ((f"policies: {{file: {policies}}}", True), ("replay: {seed: 0}", False)):
        config.write_text(text)
        assert run(command) == 0
        assert ("configured" in json.loads(file.read_text())["rules"]) == is_there
        assert ("configured" in capfd.readouterr().out) == is_there


def test_a_trajectory_writes_every_rule_by_day(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, report = tmp_path / "trajectory.json", tmp_path / "trajectory.html"
    command = ["replay", "--trajectory", "--history", str(history), "--days", "2", "--release", "0.3"]
    command += ["--budget", "0.015", "--seed", "4", "--json", str(file), "--report", str(report)]
    assert run(command) == 0
    figures = json.loads(file.read_text())
    assert list(figures["rules"]) == [
        "untouched",
        "placement",
        "moves",
        "placement_and_moves",
        "clairvoyant",
    ]
    for rule in figures["rules"].values():
        assert len(rule["hot_share_by_day"]) == len(rule["moves_by_day"]) == 2
        assert all(0 <= share <= 1 for share in rule["hot_share_by_day"])
        assert isinstance(rule["returns"], int)
        assert isinstance(rule["peak_window_moves"], int)
    assert figures["rules"]["moves"]["peak_window_moves"] == 0
    assert (figures["budget"], figures["release"], figures["seed"]) == (0.015, 0.3, 4)
    page = report.read_text()
    assert page.count("plotly.js v") == 1
    assert '<script src="http' not in page
    assert "placed and moved by the forecast" in page
    said = capfd.readouterr().out
    assert "placement_and_moves" in said
    assert str(report.resolve()) in said


@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        (["--release", "0.1"], "add --trajectory"),
        (["--budget", "0.01"], "add --trajectory"),
        (["--trajectory", "--at", "2026-10-14T10:00"], "leave it out"),
        (["--trajectory", "--budget", "1.5"], "less than or equal to 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], way_out: str, history: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", "--history", str(history), *options]) == 2
    assert way_out in capfd.readouterr().err


def test_the_demo_goes_all_the_way_and_says_where_the_report_lies(
    history: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run(["demo", "--history", str(history), "--output", str(output), "--serve-seconds", "0"]) == 0
    said = capfd.readouterr().out
    assert "shop/Deployment/cart" in said
    assert "yesterday" in said
    assert "last_week" in said
    assert "What last week cannot know" in said
    assert said.rstrip().splitlines()[-2].endswith(str((output / "report.html").resolve()))
    assert (output / "report.html").exists()
    assert json.loads((output / "replay.json").read_text())["rules"]
    assert json.loads((output / "trajectory.json").read_text())["rules"]["placement_and_moves"]["returns"] == 0
    assert "placed and moved by the forecast" in (output / "trajectory.html").read_text()
    assert json.loads((output / "backtest.json").read_text())["resources"]
    assert len(Registry(str(output / "models")).versions()) == 1


def test_the_demo_without_a_sample_says_where_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("forecast_scheduler.commands.demo.demo_command.SAMPLE", Path("no/sample"))
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 2
    assert "run the demo in a clone of the repository, or on your own data" in capfd.readouterr().err
    assert not (tmp_path / "demo-output").exists()
