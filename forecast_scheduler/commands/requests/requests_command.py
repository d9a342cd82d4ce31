"""`requests`: how much should the pods of each service request?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ClusterOption,
    ConfigOption,
    ContextOption,
    JsonOption,
    KubeconfigOption,
    ModelsOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.output_format import ManifestFormat
from forecast_scheduler.commands.replay_command import DaysOption
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures, write_text

if TYPE_CHECKING:  # it brings the scorer
    from forecast_scheduler.commands.requests.requests_of_cluster import Manifests

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="DIR",
        help="Recorded days: the forecast is made from what was before the last of them, which then show the risk. "
        "Default: the published model, for the coming week.",
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="With --history: where the recorded window begins. With --cluster: as if it were that time.",
    ),
]
FormatOption = Annotated[
    ManifestFormat,
    typer.Option(
        "--format",
        help="What --out is: strategic merge patches of pod templates, or VerticalPodAutoscaler objects that change "
        "nothing (updateMode Off).",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE.yaml", help="Write the recommendations as manifests.")
]


def requests(
    history: HistoryOption = None,
    models: ModelsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    days: DaysOption = None,
    json: JsonOption = None,
    format: FormatOption = ManifestFormat.PATCHES,
    out: OutOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Recommend CPU and memory requests for each service, by the forecast of a week, with savings and risk.

    With --history, from recorded days. Else from the published model, for the pods of the cluster. Nothing is changed.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    check_writable(out)
    moment = parse_moment(at)
    if history is not None and any(one is not None for one in (cluster, kubeconfig, context, models)):
        raise InputError("--history has its own pods and forecast: leave --models and all that names a cluster out")
    if history is not None and out is not None:
        raise InputError("--out needs the containers of the pods, which no history has: leave --history out")
    if history is None and days is not None:
        raise InputError("--days is for recorded days: add --history DIR")
    from forecast_scheduler.reports.request_tables import request_lines, request_table

    if history is not None:
        from forecast_scheduler.commands.requests.requests_of_history import report_from_history

        report = report_from_history(shell, history, moment, days)
        manifests = None
    else:
        from forecast_scheduler.commands.requests.requests_of_cluster import report_from_cluster
        from forecast_scheduler.commands.scorer.scorer_setup import Inputs

        inputs = Inputs(
            cluster=cluster, access=shell.cluster_access(kubeconfig, context, cluster), models=models, at=moment
        )
        report, manifests = report_from_cluster(shell.settings, inputs, None if out is None else format)
    figures = report.to_json()
    shell.show(request_table(figures), request_lines(figures))
    write_figures(json, figures)
    if out is not None and manifests is not None:
        _write_manifests(shell, out, manifests)


def _write_manifests(shell: Shell, out: Path, manifests: Manifests) -> None:
    import yaml

    write_text(out, yaml.safe_dump_all(manifests.objects, sort_keys=False))
    shell.say(f"{len(manifests.objects)} manifests: {out.resolve()}")
    if manifests.cut:
        shell.say(
            f"{len(manifests.cut)} services have limits below their recommendation, such as {manifests.cut[0]}: their "
            "manifests request as much as the limits allow; raise these first"
        )
