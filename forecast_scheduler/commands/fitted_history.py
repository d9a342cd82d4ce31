"""Fits as the settings want them, so that what one command measures is what `train` publishes; and a window of a
history with the forecasts for it.
"""

from __future__ import annotations

from datetime import datetime

from autoscaling.capacity.coming_week import days_before, with_coming_days
from base.errors import NotEnoughHistory
from base.progress import Progress
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast_scheduler.settings.document import Settings
from scorer.replay.preparation import Prepared, forecast_with, prepare
from scorer.replay.window import replay_window
from trainer.history.files import HistoryFiles


def prepare_history(
    files: HistoryFiles,
    history: History,
    options: FitOptions,
    *,
    at: datetime | None,
    days: int,
    hot: float,
    progress: Progress,
) -> Prepared:
    """The days after `at`, and a model fitted on what lay before. at: None = the last 04:00 that fits"""
    window = replay_window(history, at, days)
    pods = files.pod_usage(window.days[0], window.days[-1], progress=progress)
    forecaster = forecast_with(lambda before: fit(before, options, progress=progress))
    return prepare(history, pods, forecaster, at=at, days=days, hot=hot)


def prepare_coming_week(
    files: HistoryFiles, history: History, options: FitOptions, *, days: int, hot: float, progress: Progress
) -> Prepared:
    """The days after the history, as a model fitted on all of it expects them. Raises NotEnoughHistory."""
    read = days_before(history, days)
    if read[0] < history.days[0]:
        raise NotEnoughHistory(
            days=history.n_days,
            needed=(history.days[-1] - read[0]).days + 1,
            purpose=f"look {days} day{'s' if days > 1 else ''} ahead",
            way_out="look fewer days ahead with --days" if days > 1 else "",
        )
    model = fit(history, options, progress=progress)
    pods = files.pod_usage(read[0], read[-1], progress=progress)
    longer, coming = with_coming_days(history, pods, model, days)
    return prepare(longer, coming, forecast_with(lambda before: model), days=days, hot=hot)


def fit_options(settings: Settings) -> FitOptions:
    """Options of every fit. Paths are absolute: a worker process may run in another directory."""
    path = settings.train.foundation_model
    return FitOptions(foundation_model=None if path is None else path.absolute())
