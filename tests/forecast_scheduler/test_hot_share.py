"""One setting says which node is hot: what is marked, moved for, bought for and alerted of follows it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboards.__main__ import main as write_dashboards
from forecast_scheduler.cli import run
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


@pytest.fixture
def lower(tmp_path: Path) -> list[str]:
    """Between the expected peaks of the two nodes."""
    config = tmp_path / "settings.yaml"
    config.write_text("hot_share: 0.5\n")
    return ["--config", str(config)]


def figures(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run([*arguments, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_nodes_marks_those_above_it(
    evening: Evening, lower: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def marked(*options: str) -> list[str]:
        capfd.readouterr()
        assert run(["nodes", *evening.options(), *options]) == 0
        rows = [line for line in capfd.readouterr().out.splitlines() if line.startswith("│ node-")]
        assert len(rows) == 2
        return [row.split()[1] for row in rows if "\x1b" in row]

    assert (marked(), marked(*lower)) == ([], ["node-1"])


def test_the_rebalancer_counts_and_capacity_buys_by_it(
    evening: Evening, lower: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    planned = ["rebalance", "--plan", *evening.options()]
    before, after = figures(capfd, *planned), figures(capfd, *planned, *lower)
    assert before["hot_before"] == 0 < after["hot_before"] and before["heat_before"] < after["heat_before"]
    needed = ["capacity", "--history", str(evening.history), "--days", "1"]
    few, more = (figures(capfd, *needed, *options)["nodes"]["forecast"] for options in ([], lower))
    assert few < more


def test_the_alert_and_the_dashboard_are_written_by_it(
    lower: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["dashboards", "--output", str(tmp_path), *lower])
    assert write_dashboards() == 0
    alerts = (tmp_path / "prometheus" / "alerts.yaml").read_text()
    assert "> 0.5 and" in alerts and "over 50% of capacity" in alerts and "80% of capacity" not in alerts
    assert "> 0.5) or vector(0)" in (tmp_path / "grafana" / "peaks.json").read_text()
