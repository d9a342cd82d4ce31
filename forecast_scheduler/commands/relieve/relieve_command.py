"""`relieve`: which pods to move off a node that is hot now, or which rollout to hold, and with --apply move them."""

from __future__ import annotations

from typing import Annotated

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
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the node.")]
ApplyOption = Annotated[
    bool,
    typer.Option(
        "--apply", help="Cordon the node, evict these pods one by one until it is cool, uncordon it. Else only say so."
    ),
]
MostOption = Annotated[int, typer.Option("--most", metavar="N", min=1, max=50, help="Pods to move at most.")]


def relieve(
    name: Name,
    apply: ApplyOption = False,
    most: MostOption = 10,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Say which pods to move off a node that is hot, the fewest that make it cool: where each would land, how hot both
    nodes are then, which pods stay and why, and the commands. Nothing is moved without --apply."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    moment = parse_moment(at)
    if apply and cluster is not None:
        raise InputError("--cluster is a cluster from a file, whose pods cannot be moved: leave out --apply")

    import msgspec

    from forecast_scheduler.commands.relieve.carried_out import carry_out
    from forecast_scheduler.commands.relieve.relief_tables import (
        answer_of,
        relief_head,
        relief_lines,
        relief_tables,
    )
    from forecast_scheduler.commands.relieve.relieve_node import open_relieving
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs

    inputs = Inputs(cluster, shell.cluster_access(kubeconfig, context, cluster), models, prometheus, history, moment)
    with open_relieving(shell.settings, inputs, most) as relieving:
        relief = relieving.look(name)
        hot = shell.settings.hot_share
        lines = relief_lines(relief, hot, relieving.placed_by, apply=apply)
        shell.show(relief_head(relief, hot), relief_tables(relief), lines)
        write_figures(json, msgspec.to_builtins(answer_of(relief)))
        if apply and relief.moves:
            carry_out(relieving, relief, shell.settings, inputs.access, shell.say)
