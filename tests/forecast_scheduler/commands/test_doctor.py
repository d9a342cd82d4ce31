"""`doctor` on files: what it prints, its JSON, and what it says about unusable input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forecast_scheduler.cli import run
from tests.forecast_scheduler.small_history import small_tables


def test_json_has_the_same_findings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tables = small_tables()
    tables.usage.loc[:9, "cpu_cores"] = -1.0
    tables.usage.loc[tables.usage.index[-100:], "log_bytes_per_second"] = np.nan  # of the only pod of mail
    file = tmp_path / "doctor.json"
    history = str(tables.write(tmp_path / "history"))
    assert run(["doctor", "--history", history, "--output", "json", "--json", str(file)]) == 0
    said = capfd.readouterr()
    figures = json.loads(said.out)
    assert figures == json.loads(file.read_text())
    found = {one["finding"]: one for one in figures["findings"]}
    assert "10 values are negative" in found["impossible values"]["what"]
    assert found["impossible values"]["load_share"]["cpu"] is None
    assert found["missing samples"]["services"] == 1
    assert found["short history"]["load_share"]["cpu"] == 1.0
    assert figures["time_zone"] == "UTC" and figures["holiday_country"] is None


def test_findings_are_lines_with_advice_and_a_calendar_is_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tables = small_tables()
    tables.pods = tables.pods[tables.pods["service"] != "Deployment/mail"]
    assert run(["doctor", "--history", str(tables.write(tmp_path))]) == 0
    said = capfd.readouterr().out
    assert "9 days (2026-10-05 to 2026-10-13, UTC), 3 services, 2 nodes" in said
    assert "unknown requests: 1 of 3 services" in said
    assert "shop/Deployment/mail" in said and "-> set resources.requests" in said
    assert "not judged, the history is too short: never repeats (14 days)" in said
    history = small_tables().write(tmp_path / "history")
    config = tmp_path / "settings.yaml"
    config.write_text("holiday_country: DE\ntime_zone: Europe/Berlin\n")
    assert run(["doctor", "--history", str(history), "--config", str(config), "-o", "json"]) == 0
    figures = json.loads(capfd.readouterr().out)
    assert "no holidays" in figures["not_found"] and figures["time_zone"] == "Europe/Berlin"
