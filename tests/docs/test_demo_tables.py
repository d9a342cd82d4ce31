"""README.md shows of `make demo` what it prints today: two of its tables, replayed on the bundled sample."""

from __future__ import annotations

import re

import pytest
from rich.console import Console
from rich.table import Table

from base.progress import Progress, silent
from forecast.fit import FitOptions
from forecast.history import History
from forecast.model import PeakModel
from forecast_scheduler.commands import run_replay
from forecast_scheduler.settings.document import Settings
from testing.fitted_models import fitted
from tests.docs.pages import ROOT, blocks, text_of
from trainer.history.files import HistoryFiles

_WIDE = 200


def test_the_tables_of_the_readme_are_those_that_the_demo_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit_once(before: History, options: FitOptions, *, progress: Progress) -> PeakModel:
        return fitted(before, options=options)

    monkeypatch.setattr(run_replay, "fit", fit_once)
    printed = _printed(*_demo_tables())
    (shown,) = [block.text for block in blocks(text_of(ROOT / "README.md")) if "make demo" in block.text]
    wrong = [line for line in _lines(shown) if line not in _lines(printed)]
    assert not wrong and len(_lines(shown)) > 4, f"README.md shows {wrong}; paste from here:\n{printed}"


def _demo_tables() -> tuple[Table, Table]:
    """Return the two tables of the demo's third part: all rules, and those on the doubled replicas."""
    files, settings = HistoryFiles.open(ROOT / "data" / "sample"), Settings()
    known, defaults, progress = files.history(), settings.replay, silent
    played = run_replay.replay_history(
        files, known, at=None, days=defaults.days, seed=defaults.seed, hot=settings.hot_share, progress=progress
    )
    doubled = run_replay.replay_doubled(files, known, played, progress=progress)
    assert doubled is not None
    return run_replay.replay_tables(played)[0], run_replay.doubled_table(doubled)


def _printed(*tables: Table) -> str:
    console = Console(width=_WIDE)
    with console.capture() as captured:
        for table in tables:
            console.print(table)
    return captured.get()


def _lines(text: str) -> list[str]:
    """Return heads and rows of the tables in a text, as they are but for spaces."""
    return [re.sub(r" +", " ", line) for line in text.splitlines() if line.startswith(("│", "┃"))]
