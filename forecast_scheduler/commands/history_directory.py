"""Opens the history that a command works on as the settings ask, and reports its flaws."""

from __future__ import annotations

from pathlib import Path

from base.progress import Progress
from forecast.calendar import Calendar
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.settings.document import Settings
from trainer.history.cleaning import Tally
from trainer.history.files import HistoryFiles
from trainer.history.history_layout import read_settings
from trainer.own_history_store import last_read


def open_history(settings: Settings, directory: Path, progress: Progress) -> HistoryFiles:
    """The history directory, with time zone, holidays, events and moved services of the settings if they name any."""
    recorded = read_settings(directory, Tally()).calendar
    calendar = Calendar(
        time_zone=settings.time_zone or recorded.time_zone,
        holiday_country=settings.holiday_country or recorded.holiday_country,
    )
    # A history that grows may hold the beginning of a day that was not over when it was read.
    return HistoryFiles.open(
        directory,
        calendar=calendar,
        events=settings.events,
        moved=settings.moved,
        until=last_read(directory),
        progress=progress,
    )


def tell_what_was_cleaned(shell: Shell, files: HistoryFiles) -> None:
    """One line on stderr per kind of value that could not be used; nothing where all was well."""
    for line in files.report.lines():
        shell.err.print(f"note: {line}", highlight=False, markup=False)
