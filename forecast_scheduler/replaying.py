"""The replay of a history directory, as `replay` and `demo` both run it."""

from __future__ import annotations

from datetime import datetime

from rich.table import Table

from forecast.fit import fit
from forecast.history import History
from forecast.progress import Progress
from forecast_scheduler.tables import rules_table
from scorer.replay.replay import Replay, forecast_with, replay
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles

__all__ = ["replay_history", "replay_tables"]


def replay_history(
    files: HistoryFiles, history: History, *, at: datetime | None, days: int, seed: int, progress: Progress
) -> Replay:
    """Play the days after `at` back; models are fitted on what lay before it. at: None = the last 04:00 that fits."""
    window = replay_window(history, at, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    forecaster = forecast_with(lambda before: fit(before, progress=progress))
    return replay(history, pods, forecaster, at=at, days=days, seed=seed, progress=progress)


def replay_tables(played: Replay) -> list[Table]:
    """The rules, with the gap that the forecast closed, and the rungs of the degradation ladder."""
    report = played.to_json()
    return [
        rules_table(
            report["rules"],
            title="The same pods, placed by each rule, over the days that followed",
            gap_closed=report["gap_closed"],
            no_gap=report["no_gap"],
            by_regression=report["by_regression"],
        ),
        rules_table(
            report["degradation"],
            title="What remains of it as parts fail (degradation ladder, best rung first)",
            by_regression=report["by_regression"],
        ),
    ]
