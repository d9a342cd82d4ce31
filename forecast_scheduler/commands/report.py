"""`report`: what the shadow would have done, against what kube-scheduler did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecast_scheduler.options import ConfigOption, HistoryOption, JsonOption, VerboseOption
from forecast_scheduler.shell import check_writable, open_shell, write_json, write_text

DecisionsOption = Annotated[
    list[Path],
    typer.Option("--decisions", metavar="FILE...", help="Decision logs, compressed ones too: --decisions log.jsonl*"),
]
MoreFiles = Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Further decision logs.")]
DaysOption = Annotated[
    int | None,
    typer.Option("--days", metavar="N", min=1, help="Compare the last N days of the history. Default: all since then."),
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE.html", help="Write a self-contained page, too.")
]


def report(
    decisions: DecisionsOption,
    more: MoreFiles = None,
    history: HistoryOption = None,
    days: DaysOption = None,
    json: JsonOption = None,
    html: HtmlOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Compare the placements of kube-scheduler with those that the extender advised.

    Of a shadow's log, also the nodes: how hot they ran, and how hot they would have run.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    check_writable(html)

    from extender.decisions.reading import read_decisions
    from forecast_scheduler.report_html import report_page
    from forecast_scheduler.report_tables import agreement_table, comparison_notes, comparison_table
    from forecast_scheduler.reporting import decisions_json, shadow_comparison

    read = read_decisions([*decisions, *(more or ())])
    for count, what in ((read.unreadable, "that cannot be read"), (read.repeated, "about a pod that comes again")):
        if count:
            shell.err.print(f"note: {count} lines {what} were left out", highlight=False, markup=False)
    figures = decisions_json(read.decisions)
    shell.out.print(agreement_table(figures["decisions"]))
    shadow = [decision for decision in read.decisions if decision.is_shadow]
    if shadow:
        directory = shell.history(history)
        with shell.progress() as progress:
            figures["placements"] = shadow_comparison(shell, directory, shadow, days, progress)
        shell.out.print(comparison_table(figures["placements"]))
        for line in comparison_notes(figures["placements"]):
            shell.say(line)
    write_json(json, figures)
    if html is not None:
        write_text(html, report_page(figures))
        shell.say(f"report: {html.resolve()}")
