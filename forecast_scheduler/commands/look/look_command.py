"""`look`: what the forecast says of a cluster, on one screen, from a kubeconfig alone. Nothing is written."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import (
    ConfigOption,
    ContextOption,
    JsonOption,
    KubeconfigOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Metrics store to learn from. Default: prometheus.url of the settings, else the one in the cluster.",
    ),
]


def look(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    prometheus: PrometheusOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Look at a cluster, from a kubeconfig alone: its hottest nodes tonight, why, and what would help.

    Reads up to 14 days of the metrics store in the cluster, learns from them, and removes what it learned. Nothing is
    written to the cluster.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    from datetime import UTC, datetime

    from forecast_scheduler.commands.look.answers import look_at
    from forecast_scheduler.commands.look.next_steps import next_steps
    from forecast_scheduler.commands.look.screen import screen
    from forecast_scheduler.commands.metrics_store import store_to_learn_from
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs

    access = shell.cluster_access(kubeconfig, context)
    store = store_to_learn_from(shell.settings, prometheus, access)
    with shell.progress() as progress:
        figures = look_at(
            shell.settings,
            store,
            Inputs(access=access),
            cluster=access.name(),
            following=next_steps(kubeconfig, context, prometheus),
            now=datetime.now(UTC),
            progress=progress,
        ).to_json()
    shell.show(screen(figures))
    write_figures(json, figures)
