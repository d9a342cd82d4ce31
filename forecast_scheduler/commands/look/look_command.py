"""`look`: what the forecast says of a cluster, on one screen, from a kubeconfig alone. Nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    JsonOption,
    KubeconfigOption,
    VerboseOption,
)
from forecast_scheduler.commands.output_format import OutputFormat, output_format
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Metrics store to learn from. Default: prometheus.url of the settings, else the one in the cluster.",
    ),
]

HistoryToLookAt = Annotated[
    Path | None,
    typer.Option("--history", metavar="DIR", help="Learn from this history, in place of a metrics store."),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="DIR",
        help="Show nothing: read CPU and memory from the kubelets into this history until Ctrl-C, where there is no "
        "metrics store. --history DIR looks at it a day later.",
    ),
]
ContextsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig, or a pattern such as 'prod-*'; may be given several times. Default: the "
        "current one.",
    ),
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained page with all that was found.")
]

SOME_FAILED = 1
"""Exit status: of several clusters, one or more could not be looked at."""


def look(
    kubeconfig: KubeconfigOption = None,
    context: ContextsOption = None,
    prometheus: PrometheusOption = None,
    html: HtmlOption = None,
    history: HistoryToLookAt = None,
    record: RecordOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Look at a cluster, from a kubeconfig alone: its hottest nodes tonight, why, and what would help.

    Reads up to 14 days of the metrics store in the cluster, learns from them, and removes what it learned. Nothing is
    written to the cluster. Several clusters are looked at one after the other, and compared; the exit status is 1 if
    one of them could not be looked at.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    check_writable(html)
    from datetime import UTC, datetime

    from forecast_scheduler.commands.look.answers import look_at
    from forecast_scheduler.commands.look.details import in_full
    from forecast_scheduler.commands.look.next_steps import next_steps
    from forecast_scheduler.commands.look.screen import screen
    from forecast_scheduler.commands.look.several import chosen_clusters, clusters_table, failure_lines, look_at_each
    from forecast_scheduler.commands.metrics_store import store_to_learn_from
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from kube.client.cluster_access import ClusterAccess

    def figures_of(access: ClusterAccess) -> dict[str, Any]:
        source = store_to_learn_from(shell.settings, prometheus, access) if history is None else shell.history(history)
        with shell.progress() as progress:
            return look_at(
                shell.settings,
                source,
                Inputs(access=access),
                cluster=access.name(),
                following=next_steps(kubeconfig, access.context, prometheus, config),
                now=datetime.now(UTC),
                progress=progress,
            ).to_json()

    clusters = chosen_clusters(shell.cluster_access(kubeconfig, None), context or ())
    if len(clusters) > 1 and (record or history) is not None:
        raise InputError("a history is of one cluster: name one context with --record and --history")
    others = (prometheus, html, history, json)
    if record is not None and (output_format.get() is not OutputFormat.TABLE or any(one is not None for one in others)):
        raise InputError(
            "--record shows and writes nothing else: leave --prometheus, --history, --html, --json and --output out"
        )
    if record is not None:
        from forecast_scheduler.recording.record_history import record_history

        record_history(shell.settings, clusters[0], record, shell.say)
        return
    if len(clusters) == 1:
        figures = figures_of(clusters[0])
        looks = [figures]
        shell.show(screen(figures) if output_format.get() is OutputFormat.TABLE else in_full(figures))
    else:
        looks = list(look_at_each(clusters, figures_of, shell.err))
        figures = {"clusters": looks}
        shell.show(clusters_table(looks), failure_lines(looks))
    if html is not None:
        from forecast_scheduler.commands.look.look_page import look_page

        shell.write_report(html, look_page(looks))
    write_figures(json, figures)
    if any("error" in one for one in looks):
        raise typer.Exit(SOME_FAILED)
