"""`report`: predicted against actual peaks, and what the shadow would have done, against what kube-scheduler did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    HistoryOption,
    JsonOption,
    ModelsOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures, write_text

if TYPE_CHECKING:
    from forecast.history import History
    from forecast_scheduler.reports.peaks_report.peaks_view import PeaksView
    from placement.decisions.decision import Decision
    from trainer.history.files import HistoryFiles

DecisionsOption = Annotated[
    list[Path] | None,
    typer.Option("--decisions", metavar="FILE...", help="Decision logs, compressed ones too: --decisions log.jsonl*"),
]
MoreFiles = Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Further decision logs.")]
DaysOption = Annotated[
    int | None,
    typer.Option(
        "--days",
        metavar="N",
        min=1,
        help="The last N days of the history. Default: 14 of the peaks (35 at most), all since the first decision.",
    ),
]
TopOption = Annotated[
    int,
    typer.Option(
        "--top", metavar="N", min=1, max=300, help="Number of nodes, and of services, with curves in the page."
    ),
]
RehearseOption = Annotated[
    bool,
    typer.Option(
        "--rehearse/--no-rehearse",
        help="If no stored model can be compared with past days, fit one on the days before the last week.",
    ),
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE.html", help="Write a self-contained page, too.")
]


def report(
    decisions: DecisionsOption = None,
    more: MoreFiles = None,
    history: HistoryOption = None,
    models: ModelsOption = None,
    days: DaysOption = None,
    top: TopOption = 60,
    rehearse: RehearseOption = True,
    json: JsonOption = None,
    html: HtmlOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Hold the forecasts of peaks against what came, and say where it will be hot next.

    With --decisions, compare the placements of kube-scheduler with those that the extender advised; of a shadow's log,
    also the nodes: how hot they ran, and how hot they would have run. With --models as well, both.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    if more and not decisions:
        raise InputError(f"{more[0]} is named without --decisions: write --decisions before the first decision log")
    if not decisions and history is None and html is None and json is None:
        raise InputError(
            "nothing to report on: pass --history DIR --models DIR --html FILE.html for the peaks, or --decisions FILE"
        )
    check_writable(json)
    check_writable(html)

    from forecast_scheduler.reports.decisions_report import decisions_page

    figures: dict[str, Any] = {}
    log = _decisions(shell, [*decisions, *(more or ())], figures) if decisions else []
    shadow = [decision for decision in log if decision.is_shadow]
    with_peaks = models is not None or not log
    view: PeaksView | None = None
    if shadow or with_peaks:
        from forecast_scheduler.commands.history_directory import open_history, tell_what_was_cleaned

        directory = shell.history(history)
        with shell.progress() as progress:
            files = open_history(shell.settings, directory, progress)
            known = files.history(progress=progress)
        tell_what_was_cleaned(shell, files)
        if shadow:
            _shadow(shell, files, known, shadow, days, figures)
        if with_peaks:
            from forecast_scheduler.commands.read_peaks import read_peaks
            from forecast_scheduler.reports.decisions_figures import adoption_day

            adopted = adoption_day(log, known.calendar)
            now = datetime.now(UTC)
            view = read_peaks(shell, known, models, made=now, days=days, top=top, rehearse=rehearse, adopted=adopted)
            _peaks(shell, view, figures)
    write_figures(json, figures)
    if html is None:
        return
    if view is None:
        write_text(html, decisions_page(figures))
    else:
        from forecast_scheduler.reports.peaks_report.peaks_page import peaks_page

        write_text(html, peaks_page(view, figures if log else None))
    shell.say(f"report: {html.resolve()}")


def _decisions(shell: Shell, files: Sequence[Path], figures: dict[str, Any]) -> Sequence[Decision]:
    """Return the decisions by time. Reports how often kube-scheduler followed the advice, and adds it to `figures`."""
    from forecast_scheduler.reports.decisions_figures import decisions_json
    from forecast_scheduler.reports.decisions_report import agreement_table
    from placement.decisions.decision_log_reader import read_decisions

    read = read_decisions(files)
    for count, what in ((read.unreadable, "that cannot be read"), (read.repeated, "about a pod that comes again")):
        if count:
            shell.err.print(f"note: {count} lines {what} were left out", highlight=False, markup=False)
    figures |= decisions_json(read.decisions)
    shell.show(agreement_table(figures["decisions"]))
    return read.decisions


def _shadow(
    shell: Shell,
    files: HistoryFiles,
    known: History,
    shadow: Sequence[Decision],
    days: int | None,
    figures: dict[str, Any],
) -> None:
    """How hot the nodes ran, and how hot they would have run."""
    from forecast_scheduler.reports.decisions_figures import shadow_comparison
    from forecast_scheduler.reports.decisions_report import comparison_notes, comparison_table

    with shell.progress() as progress:
        figures["placements"] = shadow_comparison(files, known, shadow, days, shell.settings.hot_share, progress)
    shell.show(comparison_table(figures["placements"]), comparison_notes(figures["placements"]))


def _peaks(shell: Shell, view: PeaksView, figures: dict[str, Any]) -> None:
    """The hottest nodes, and how past forecasts did."""
    from forecast_scheduler.reports.peaks_report.peaks_figures import figures_json, hottest_table, peak_notes

    figures["peaks"] = figures_json(view)
    shell.show(hottest_table(figures["peaks"]), peak_notes(figures["peaks"]))
