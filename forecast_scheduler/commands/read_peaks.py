"""The peaks as commands read them: with the settings' registry and a progress bar."""

from __future__ import annotations

from datetime import date, datetime

from base.errors import InputError, StoreError
from forecast.fit import fit
from forecast.history import History
from forecast_scheduler.commands.fitted_history import fit_options
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.reports.peaks_report.peaks_view import (
    DEFAULT_DAYS,
    DEFAULT_TOP,
    MOST_DAYS,
    PeaksView,
    peaks_view,
)


def read_peaks(
    shell: Shell,
    history: History,
    models: str | None,
    *,
    made: datetime,
    days: int | None = None,
    top: int = DEFAULT_TOP,
    rehearse: bool = True,
    adopted: date | None = None,
) -> PeaksView:
    """The view, or InputError where models cannot be read. models: None = where the settings say; see `peaks_view`."""
    registry = open_registry(shell.settings.models, models)
    with shell.progress() as progress:
        try:
            return peaks_view(
                history,
                registry,
                made=made,
                days=min(days or DEFAULT_DAYS, MOST_DAYS),
                top=top,
                adopted=adopted,
                hot=shell.settings.hot_share,
                fit=(lambda before: fit(before, fit_options(shell.settings), progress=progress)) if rehearse else None,
                told=lambda done, total: progress("hold forecasts against what came", done, total),
            )
        except StoreError as error:
            raise InputError(f"models at {registry.url} cannot be read: {error}; check --models") from error
