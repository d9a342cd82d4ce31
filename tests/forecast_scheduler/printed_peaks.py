"""What is printed of a node's peak, out of JSON, sentences, tables and metrics: share, resource, time, upper bound."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pytest

from forecast_scheduler.cli import run
from scorer.answers import Peak
from scorer.highest_peak import bound_share, clock
from scorer.load_scale import percent


def said(peak: Mapping[str, Any] | Peak | None, today: date) -> tuple[str, ...]:
    """Share, resource, time and bound as they are printed."""
    assert peak is not None
    if not isinstance(peak, Peak):
        peak = Peak(**{**peak, "at": datetime.fromisoformat(str(peak["at"]))})
    return percent(peak.share), peak.resource, clock(peak.at, today), percent(bound_share(peak))


def in_words(text: str) -> tuple[str, ...]:
    """The same out of a sentence."""
    found = re.search(
        r"expected peak (\d+ %) of (\w+) at ((?:\w{3} )?\d\d:\d\d), upper bound \(95 %\) (\d+ %)",
        " ".join(text.split()),
    )
    assert found, text
    return found.groups()


def figures(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run([*arguments, "--json", "-"]) == 0
    return dict(json.loads(capfd.readouterr().out))


def text(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    capfd.readouterr()
    assert run([*arguments]) == 0
    return capfd.readouterr().out


def row(table: str, of: str) -> list[str]:
    """Cells of the row of a table that has a name in it."""
    line = next(line for line in table.splitlines() if re.search(rf"[│ ] {of} +│", line))
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def metric(text: str, name: str, **labels: str) -> float:
    """The value of the series with these labels."""
    lines = (line for line in text.splitlines() if line.startswith(f"{name}{{"))
    (value,) = (
        float(line.rpartition(" ")[2]) for line in lines if all(f'{k}="{v}"' in line for k, v in labels.items())
    )
    return value
