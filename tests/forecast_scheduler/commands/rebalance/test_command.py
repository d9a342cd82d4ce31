"""`rebalance --plan` on a recorded morning: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


def test_a_recorded_cluster_has_a_plan_and_none_without_a_forecast(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "plan.json"
    assert run(["rebalance", "--plan", *evening.options(), "--json", str(written)]) == 0
    said = " ".join("".join(capfd.readouterr()).split())
    found = json.loads(written.read_text())
    assert f"{found['hot_before']} expected, {found['hot_after']} after the moves" in said
    assert "windows for moves: " in said
    money = found["money"]
    assert (money["nodes_with_price"], money["emptied_nodes"], money["saved_per_month"]) == (0, [], 0)
    assert "money: no node has a price" in said
    assert found["mode"] == "off" and found["n_pods"] > 0
    assert found["heat_after"] <= found["heat_before"] <= found["heat_after"] + found["most_gain"] + 1e-6
    curve, budget = found["curve"], found["budget"]
    assert curve[0] == {"moves": 0, "hot": found["hot_before"]} and f"0: {found['hot_before']}" in said
    assert budget["limit"].startswith("rebalance.budget.") and budget["moves"] <= curve[-1]["moves"]
    for move in found["moves"]:
        assert move["source"] != move["target"] and move["reason"]
    assert run(["rebalance", "--plan", *evening.options(models=False)]) == 2
    assert "forecast-scheduler train" in capfd.readouterr().err


def test_a_plan_leaves_excluded_services_alone_and_keeps_to_the_change_windows(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def planned(settings: str) -> dict[str, Any]:
        config = tmp_path / "settings.yaml"
        config.write_text(settings)
        assert run(["rebalance", "--plan", *evening.options(), "--config", str(config), "--json", "-"]) == 0
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        return found

    excluded = planned('excluded: {namespaces: ["*"]}\n')
    assert excluded["moves"] == [] and "excluded.namespaces has *" in excluded["kept"]
    closed = planned('change_windows: ["18:00-18:01"]\n')
    assert closed["moves"] == [] and "change_windows (18:00-18:01)" in json.dumps(closed)


@pytest.mark.parametrize("options", [["--cluster", "cluster.json"], ["--json", "plan.json"]])
def test_what_only_a_plan_can_use_needs_plan(options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["rebalance", *options]) == 2
    assert "add --plan" in capfd.readouterr().err
