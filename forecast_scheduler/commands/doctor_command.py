"""`doctor`: what in a history limits its forecast, or what a Prometheus has, how much it touches, and what to do?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    ContextOption,
    HistoryOption,
    JsonOption,
    KubeconfigOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from kube.client.cluster_access import ClusterAccess
    from trainer.audit.examination import Examination

Prometheus = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Prometheus server to look at instead, as it is right now. Default: without --history, the one in the "
        "cluster.",
    ),
]


def doctor(
    history: HistoryOption = None,
    prometheus: Prometheus = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Report what limits the forecast in a history: gaps, wrong values, hidden demand, services that never repeat.

    Each finding says how many services or nodes it touches, their share of the load, and what to do about it.
    With --prometheus, or if no history is named: which agents, nodes and pods a server knows, whether figures balance,
    and how they are read.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    if prometheus is not None and history is not None:
        raise InputError("--history and --prometheus are two things to look at: give one of them")
    if prometheus is not None or (history is None and shell.settings.history is None):
        write_figures(json, _look_at_server(shell, prometheus, shell.cluster_access(kubeconfig, context)))
        return
    figures = _examine(shell, shell.history(history)).to_json()

    from forecast_scheduler.reports.history_tables import finding_lines, findings_table, summary_lines

    shell.show(summary_lines(figures))
    if figures["findings"]:
        shell.show(findings_table(figures))
    shell.show(finding_lines(figures))
    write_figures(json, figures)


def _examine(shell: Shell, directory: Path) -> Examination:
    from forecast_scheduler.commands.history_directory import open_history
    from trainer.audit.examination import examine

    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        return examine(known, files.report, files.cut)


def _look_at_server(shell: Shell, url: str | None, access: ClusterAccess) -> dict[str, Any]:
    """Print what the server has, as far as it can be read; then raise what `train` would refuse it for."""
    from datetime import UTC, datetime

    from forecast_scheduler.commands.metrics_store import named_store_of, store_without_history
    from forecast_scheduler.commands.train_night import open_source
    from trainer.prometheus.http_answer import ImpossibleAnswer, PrometheusUnreachable

    store = named_store_of(shell.settings, url, access) or store_without_history(shell.settings, access)
    source, now = open_source(shell.settings.prometheus, store), datetime.now(UTC)
    refused: InputError | None = None
    remarks: tuple[str, ...] = ()
    try:
        remarks = source.check(now)
    except (PrometheusUnreachable, ImpossibleAnswer):
        raise
    except InputError as error:
        refused = error
    try:
        with shell.progress() as progress:
            inventory = source.inventory(now, progress)
    except InputError as error:
        raise refused or error from error
    shell.show(inventory.lines())
    wrong = [*remarks, *(remark.text for remark in inventory.remarks if remark.wrong)]
    for remark in inventory.remarks:
        if not remark.wrong:
            shell.say(f"read as follows: {remark.text}")
    shell.say(f"{len(wrong)} findings" if len(wrong) != 1 else "1 finding")
    for text in wrong:
        shell.say(f"- {text}")
    if refused is not None:
        raise refused
    return {**inventory.to_json(), "findings": wrong}
