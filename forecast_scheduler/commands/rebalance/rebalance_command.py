"""`rebalance`: move pods off the nodes that will be hot tonight, in the valley before."""

from __future__ import annotations

from typing import Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    AtOption,
    CertOption,
    ClientCaOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    HostOption,
    JsonOption,
    KeyOption,
    KubeconfigOption,
    LeaderOption,
    ModelsOption,
    PortOption,
    PrometheusOption,
    RecordedOption,
    TokenOption,
    VerboseOption,
    parse_moment,
    serving_options,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures
from rebalancer.rebalance_settings import RebalanceMode

PlanOption = Annotated[
    bool, typer.Option("--plan", help="Print the moves that would help tonight, and end. Nothing is written.")
]
ModeOption = Annotated[
    RebalanceMode | None,
    typer.Option("--mode", help="off: plan for the page only; shadow: also record and grade; on: also move pods."),
]


def rebalance(
    plan: PlanOption = False,
    mode: ModeOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    leader_elect: LeaderOption = None,
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
    """Move pods off the nodes that will be hot tonight, in the valley before: with --plan, only say which.

    Without --plan it runs until SIGTERM or Ctrl-C, and does what `rebalance.mode` allows: nothing, unless it is set.
    """
    shell = open_shell(config, verbose=verbose, service=not plan, json_file=json)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)
    options |= {
        "mode": mode,
        "leader_election": None if leader_elect is None else {"enabled": leader_elect},
    }
    moment = parse_moment(at)

    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"rebalance": options})
    inputs = Inputs(cluster, shell.cluster_access(kubeconfig, context, cluster), models, prometheus, history, moment)
    if not plan:
        if cluster is not None:
            raise InputError("--cluster is a cluster from a file, whose pods cannot be moved: add --plan")
        if json is not None:
            raise InputError("--json is for the report of a plan: add --plan")

        from forecast_scheduler.commands.rebalance.rebalance_serve import serve

        serve(shell, settings, inputs)
        return
    check_writable(json)

    import msgspec

    from forecast_scheduler.commands.rebalance.plan_once import (
        curve_lines,
        plan_lines,
        plan_money_lines,
        plan_once,
        plan_table,
    )
    from rebalancer.nights_needed import nights_needed
    from rebalancer.plan_forms import answer_of, plan_answer

    made, curve, money = plan_once(settings, inputs)
    nights = nights_needed(curve, made.n_pods, settings.rebalance.budget)
    answer = answer_of(made, settings.rebalance.mode.value)
    if answer.moves:
        shell.show(plan_table(answer))
    assert made.made_at.tzinfo is not None  # now of the tables
    shell.show(plan_lines(answer, made.made_at.tzinfo), curve_lines(curve, nights))
    shell.show(plan_money_lines(money, len(answer.moves)))
    figures = msgspec.to_builtins(answer) | msgspec.to_builtins(plan_answer(curve, nights))
    write_figures(json, {**figures, "money": money})
