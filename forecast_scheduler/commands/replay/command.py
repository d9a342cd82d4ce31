"""`replay`: what would have happened, had the pods been placed otherwise?"""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.options.common import (
    ConfigOption,
    HistoryOption,
    JsonOption,
    ReportOption,
    SeedOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures, write_text

AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="When the pods are placed: 2026-11-14T04:00, local time of the history unless it has an offset. "
        "Default: the last 04:00 that leaves enough days.",
    ),
]
DaysOption = Annotated[int | None, typer.Option("--days", metavar="N", min=1, max=14, help="Days to play back.")]


def replay(
    history: HistoryOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    at: AtOption = None,
    days: DaysOption = None,
    seed: SeedOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Place your own pods anew by each rule, play the real days back, and count the nodes that run hot.

    The forecast is trained only on what lay before the placement. If --config changes scores, capacities or policies,
    one more rule, `configured`, places by them.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    check_writable(report)
    directory = shell.history(history)
    moment = parse_moment(at)

    from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned
    from forecast_scheduler.commands.replay.run_replay import configured_setup, replay_history, replay_tables

    defaults = shell.settings.replay
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        played = replay_history(
            files,
            known,
            at=moment,
            days=days if days is not None else defaults.days,
            seed=seed if seed is not None else defaults.seed,
            setup=configured_setup(shell.settings),
            progress=progress,
        )
    tell_what_was_cleaned(shell, files)
    for table in replay_tables(played):
        shell.out.print(table)
    write_figures(json, played.to_json())
    if report is not None:
        from scorer.replay.html import replay_page

        write_text(report, replay_page(played, known))
        shell.out.print(f"report with plots: {report.resolve()}", highlight=False, markup=False, soft_wrap=True)
