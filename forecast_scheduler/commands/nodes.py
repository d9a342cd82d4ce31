"""`nodes` and `node`: the nodes with the highest expected peaks, what makes the peak of one, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    AtOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    JsonOption,
    KubeconfigOption,
    ModelsOption,
    PrometheusOption,
    RecordedOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.remote_server_options import (
    SERVER_SECONDS,
    CaOption,
    CertOption,
    KeyOption,
    TokenOption,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from forecast_scheduler.commands.node_reports import NodeReports

_TOP: Final = 10

_IN_CLUSTER = "kubernetes"
ScorerOption = Annotated[
    str | None,
    typer.Option(
        "--scorer",
        metavar="URL|kubernetes",
        help="URL of a running scorer; kubernetes: the one in the cluster, through its API server. Default: compute "
        "from the cluster itself.",
    ),
]
OnOption = Annotated[
    str | None,
    typer.Option("--on", metavar="DAY", help="Day of the forecast, such as 2026-03-12. Default: the next 24 h."),
]
TopNodes = Annotated[int, typer.Option("--top", metavar="N", min=1, help="Nodes to show, the hottest first.")]
TopPods = Annotated[
    int, typer.Option("--top", metavar="N", min=0, max=50, help="Largest pods to find another node for.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a node.")]


def nodes(
    top: TopNodes = _TOP,
    on: OnOption = None,
    scorer: ScorerOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    client_cert: CertOption = None,
    client_key: KeyOption = None,
    cluster: ClusterOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """List the hottest nodes of the next 24 hours, or of a day of the forecast: expected peak, upper bound, time,
    resource, pods. Half hours that are over do not count."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    day = _day(on)

    import msgspec

    from forecast_scheduler.reports.money import money_lines
    from forecast_scheduler.reports.node_tables import nodes_table

    remote = (scorer, token_file, ca, client_cert, client_key)
    local = (cluster, kubeconfig, context, models, prometheus, history, at)
    with _reports(shell, remote, local) as reports:
        found, prices = reports.nodes(by_peak=True, top=top, day=day), reports.prices()
    shell.show(nodes_table(found, shell.settings.hot_share, prices))
    if prices is not None:
        shell.show(money_lines(prices.to_json()))
    if found.peak_hours is None:
        shell.say("there is no forecast: no model has been published, or none can be used")
    write_figures(json, {**msgspec.to_builtins(found), "money": None if prices is None else prices.by_node_json()})


def node(
    name: Name,
    top: TopPods = 5,
    on: OnOption = None,
    scorer: ScorerOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    client_cert: CertOption = None,
    client_key: KeyOption = None,
    cluster: ClusterOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show what makes the peak of a node: its curve of the next 24 hours, or of a day, its services by share, and the
    best other node for each of its largest pods, with the effect on both peaks. Nothing is moved."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    day = _day(on)

    import msgspec

    from forecast_scheduler.reports.node_tables import node_lines, node_tables

    remote = (scorer, token_file, ca, client_cert, client_key)
    local = (cluster, kubeconfig, context, models, prometheus, history, at)
    with _reports(shell, remote, local) as reports:
        report = reports.node_report(name, day=day, top=top)
    shell.show(node_tables(report, shell.settings.hot_share), node_lines(report))
    write_figures(json, msgspec.to_builtins(report))


_Remote = tuple[str | None, Path | None, Path | None, Path | None, Path | None]
_Local = tuple[Path | None, Path | None, str | None, str | None, str | None, Path | None, str | None]


@contextmanager
def _reports(shell: Shell, remote: _Remote, local: _Local) -> Iterator[NodeReports]:
    """Ask the scorer that is named, else compute from the cluster. Raises InputError."""
    from forecast_scheduler.commands.node_reports import RemoteNodeReports, local_node_reports
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from serving.remote_service import RemoteAddress, RemoteService

    url, token_file, ca, client_cert, client_key = remote
    cluster, kubeconfig, context, models, prometheus, history, at = local
    access = shell.cluster_access(kubeconfig, context, cluster)
    if url == _IN_CLUSTER:
        if any(remote[1:]) or any(one is not None for one in (cluster, models, prometheus, history, at)):
            raise InputError(
                "--scorer kubernetes asks the scorer in the cluster: pass --kubeconfig and --context at most with it"
            )
        from forecast_scheduler.commands.api_server_proxy import ProxiedService

        yield RemoteNodeReports(lambda: ProxiedService(access.client(), "scorer", seconds=SERVER_SECONDS))
        return
    if url is not None:
        if any(one is not None for one in local):
            raise InputError(
                "--scorer asks a running scorer, which has its own cluster, models and usage: pass it alone, or leave "
                "it out"
            )
        address = RemoteAddress(url, token_file, ca, client_cert, client_key, SERVER_SECONDS)
        yield RemoteNodeReports(lambda: RemoteService(address, "scorer"))
        return
    if any(remote):
        raise InputError("--token-file, --ca, --client-cert and --client-key are for --scorer URL: pass it, too")
    inputs = Inputs(cluster, access, models, prometheus, history, parse_moment(at))
    with local_node_reports(shell.settings, inputs) as reports:
        yield reports


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--on {text!r} is no day: write for instance 2026-03-12") from None
