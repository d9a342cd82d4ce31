"""Recommendations from recorded days: fitted on what was before them, and held against them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from autoscaling.requests.expected_use import recorded_use
from autoscaling.requests.recommendation_report import RequestReport, report_on
from forecast_scheduler.commands.fitted_history import fit_options, prepare_history
from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.commands.shell import Shell
from scorer.replay.window import playable_days


def report_from_history(shell: Shell, directory: Path, at: datetime | None, days: int | None) -> RequestReport:
    """at: where the recorded window begins; None = the last 04:00 that fits. days: None = as the settings of replay"""
    with shell.progress() as progress:
        files = open_history(shell.settings, shell.history(directory), progress)
        known = files.history(progress=progress)
        n_days = days or playable_days(known, shell.settings.replay.days)
        hot, fitting = shell.settings.hot_share, fit_options(shell.settings)
        prepared = prepare_history(files, known, fitting, at=at, days=n_days, hot=hot, progress=progress)
        use, settings = recorded_use(known, prepared), shell.settings
        prices = read_price_sources(settings.prices).price_groups(known, prepared.recording).recorded
        report = report_on(use, settings.requests, hot, settings.excluded, prices, prepared.recording)
    tell_what_was_cleaned(shell, files)
    return report
