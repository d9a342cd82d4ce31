"""What `capacity` searches on: the window of a history directory and the forecasts for it."""

from __future__ import annotations

from datetime import datetime

from forecast.fit import fit
from forecast.history import History
from forecast.progress import Progress
from scorer.replay.preparation import Prepared, forecast_with, prepare
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles


def prepare_history(
    files: HistoryFiles, history: History, *, at: datetime | None, days: int, progress: Progress
) -> Prepared:
    """The days after `at`, and a model fitted on what lay before. at: None = the last 04:00 that fits"""
    window = replay_window(history, at, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    return prepare(history, pods, forecast_with(lambda before: fit(before, progress=progress)), at=at, days=days)
