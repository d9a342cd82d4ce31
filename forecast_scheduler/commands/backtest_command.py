"""`backtest`: how well would yesterday's models have forecast today's peaks, against simple rules?"""

from __future__ import annotations

from forecast_scheduler.commands.command_options import (
    ConfigOption,
    EventsOption,
    HistoryOption,
    JsonOption,
    MovedOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures
from forecast_scheduler.reports.history_tables import baselines_table


def backtest(
    history: HistoryOption = None,
    events: EventsOption = None,
    moved: MovedOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Forecast the daily peaks of the last weeks, night by night, and compare with what came.

    Every night the model is fitted anew on what was known then. Losses are pinball losses, lower is better.
    """
    shell = open_shell(config, verbose=verbose, json_file=json).with_files(events=events, moved=moved)
    check_writable(json)
    directory = shell.history(history)

    from forecast.backtest import backtest as run_backtest
    from forecast.fit import fit
    from forecast_scheduler.commands.fitted_history import fit_options
    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned

    options = fit_options(shell.settings)
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        result = run_backtest(
            known, lambda before, previous: fit(before, options, previous=previous), progress=progress
        )
    tell_what_was_cleaned(shell, files)
    report = result.to_json()
    shell.show(baselines_table(report))
    write_figures(json, report)
