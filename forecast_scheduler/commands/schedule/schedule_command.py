"""`schedule`: our own scheduling loops, beside kube-scheduler or instead of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    AtOption,
    CertOption,
    ClientCaOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    DecisionsOption,
    DomainOption,
    HostOption,
    JsonOption,
    KeyOption,
    KubeconfigOption,
    LeaderOption,
    ModelsOption,
    PoliciesOption,
    PortOption,
    ProfileOption,
    PrometheusOption,
    RecordedOption,
    ShardsOption,
    ShareOption,
    TokenOption,
    VerboseOption,
    parse_moment,
    policies_option,
    serving_options,
)
from forecast_scheduler.commands.output_format import OutputFormat, output_format
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.settings.document import Settings

_SYNC_SECONDS = 120.0

NameOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler-name",
        metavar="NAME",
        help="Place pods with this schedulerName. Default: forecast-scheduler.",
    ),
]
DryRunOption = Annotated[
    bool | None,
    typer.Option("--dry-run", help="Decide and report; bind nothing, write nothing.", show_default=False),
]


def schedule(
    profile: ProfileOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    scheduler_name: NameOption = None,
    domain: DomainOption = None,
    share_nodes: ShareOption = None,
    dry_run: DryRunOption = None,
    leader_elect: LeaderOption = None,
    shards: ShardsOption = None,
    decisions: DecisionsOption = None,
    policies: PoliciesOption = None,
    host: HostOption = None,
    port: PortOption = None,
    token_file: TokenOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    client_ca: ClientCaOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Place pods by our own scheduling loops: those whose schedulerName is ours.

    With --cluster FILE and --dry-run it decides once, for the pods of the file that wait, and prints a table; else it
    follows the API server until SIGTERM or Ctrl-C. deploy/overlays/own-loops has what is to be installed for it.
    """
    shell = open_shell(config, verbose=verbose, json_file=json, service=cluster is None)
    check_writable(json)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)

    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.settings.document import with_options
    from forecast_scheduler.settings.feature_options import check_profiles, profile_names

    options |= {
        "profiles": None if profile is None else profile_names(profile),
        "scheduler_name": scheduler_name,
        "domain": domain,
        "share_nodes": share_nodes or None,
        "dry_run": dry_run or None,
        "decisions": None if decisions is None else {"log": decisions},
        "leader_election": None if leader_elect is None else {"enabled": leader_elect},
        "shards": None if shards is None else {"enabled": shards},
    }
    settings = with_options(shell.settings, {"schedule": options, "policies": policies_option(policies)})
    check_profiles(settings.schedule)
    if decisions is not None and settings.schedule.dry_run:
        raise InputError("a dry run binds no pods, so its log of decisions would stay empty: leave --decisions out")
    inputs = Inputs(
        cluster, shell.cluster_access(kubeconfig, context, cluster), models, prometheus, history, parse_moment(at)
    )
    if cluster is not None:
        _decide_once(shell, settings, inputs, json)
        return
    if json is not None or output_format.get() is not OutputFormat.TABLE:
        raise InputError(
            "--json and --output are for a cluster from a file, which is decided on once: pass --cluster FILE, too"
        )

    from forecast_scheduler.commands.schedule.schedule_serve import serve

    serve(shell, settings, inputs)


def _decide_once(shell: Shell, settings: Settings, inputs: Inputs, json: Path | None) -> None:
    if not settings.schedule.dry_run:
        raise InputError("pods of a cluster from a file cannot be bound: pass --dry-run, too, or leave --cluster out")

    from forecast_scheduler.commands.schedule.dry_run_of_file import open_plan
    from forecast_scheduler.commands.schedule.dry_run_tables import plan_json, plan_lines, plan_table

    with open_plan(settings, inputs) as (background, plan):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        decided = plan()
    if decided.planned:
        shell.show(plan_table(decided.planned))
    shell.show(plan_lines(decided, settings.schedule.scheduler_names.values()))
    write_figures(json, plan_json(decided))
