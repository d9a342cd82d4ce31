"""`models list`: age, losses beside last week's, the gate's verdict, and models that cannot be used."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forecast_scheduler.cli import run
from forecast_scheduler.reports.model_tables import model_facts, models_table
from tests.forecast.artefacts import manifest_of
from tests.forecast_scheduler.small_history import small_tables

SCORE = {"loss50": 0.2, "loss95": 0.1, "coverage95": 0.95, "n": 9}
LAST_WEEK = {"loss50": 0.4, "loss95": 0.3, "coverage95": 0.5, "n": 9}
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _gate(verdict: str) -> dict[str, object]:
    return {"verdict": verdict, "reason": "because", "widening": 1.0, "held_back_nights": 0, "days": [],
            "candidate": SCORE, "current": {**SCORE, "loss50": 0.25}, "naive": LAST_WEEK}  # fmt: skip


def test_a_published_model_is_listed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    history, models = small_tables().write(tmp_path / "history"), str(tmp_path / "models")
    for _ in range(2):
        assert run(["train", "--history", str(history), "--models", models]) == 0
    capfd.readouterr()
    assert run(["models", "list", "--models", models, "--json", "-"]) == 0
    found = json.loads(capfd.readouterr().out)
    first, second = found["models"]
    assert [first["version"], second["version"]] == found["versions"]
    assert [first["in_use"], second["in_use"]] == [False, True] and found["in_use"] == second["version"]
    assert 0 <= second["age_seconds"] <= first["age_seconds"] < 600
    assert second["resources"]["cpu"]["verdict"] == "nothing_to_compare"
    manifest = tmp_path / "models" / first["version"] / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"cpu"', '"gpu"', 1))
    assert run(["models", "list", "--models", models]) == 0
    text = capfd.readouterr().out
    assert f"* {second['version']}" in text and "not compared" in text and "is refused" in text
    assert "used by" not in text


@pytest.mark.parametrize("source", ["backtest", "gate"])
def test_losses_are_those_of_the_backtest_else_of_the_gate(source: str) -> None:
    made = manifest_of()
    names = made.resources
    if source == "backtest":
        figures = {"forecast-scheduler": SCORE, "baselines": {"same_day_last_week": LAST_WEEK}}
        manifest = replace(made, backtest={"resources": dict.fromkeys(names, figures)})
    else:
        gates = {name: _gate("held_back" if name == names[0] else "passed") for name in names}
        manifest = replace(made, extra={"info": {"gate": gates}}, backtest={})
    facts = model_facts("v", manifest, None, NOW)
    held_back = facts["resources"][names[0]]
    expected = 0.25 if source == "gate" else 0.2  # what a resource that was held back publishes is the model before
    assert (held_back["loss50"], held_back["last_week_loss50"]) == (expected, 0.4)
    assert (held_back["loss95"], held_back["last_week_loss95"]) == (0.1, 0.3)
    assert facts["age_seconds"] == (NOW - (manifest.published or manifest.created)).total_seconds()
    assert held_back["verdict"] == ("held_back" if source == "gate" else None)
    assert models_table([facts]).row_count == 1
