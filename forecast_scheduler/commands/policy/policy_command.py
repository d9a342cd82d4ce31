"""`policy`: whether a file of policies is sound, and what it would mean for the pods of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    AtOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    JsonOption,
    ModelsOption,
    PrometheusOption,
    RecordedOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.output_format import reporting
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from forecast_scheduler.commands.policy.policy_documents import ReadPolicies
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs

policy = typer.Typer(help="Check policies before they take effect.")

_SYNC_SECONDS = 120.0

PolicyFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="File with the policy document (docs/use/policies.md).")
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="FILE|configmap:NS/NAME",
        help="Policies to compare with. Default: those that the settings name, else the settings alone.",
    ),
]
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=1, help="Most kinds of pods to show, those with the most pods first.")
]
ServerOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="Kubeconfig of an API server whose pods are checked. Default: none."
    ),
]


@policy.callback()
def _group() -> None:
    """Makes `check` a command of its own even while it is the only one."""


@policy.command()
@reporting
def check(
    file: PolicyFile,
    kubeconfig: ServerOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    against: AgainstOption = None,
    top: TopOption = 50,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Check a file of policies; with a cluster also say which pods it touches and how their best nodes change.

    With none of --cluster, --kubeconfig and --context no cluster is looked at.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    moment = parse_moment(at)
    has_server = kubeconfig is not None or context is not None
    with_cluster = cluster is not None or has_server
    given = {
        "--models": models,
        "--prometheus": prometheus,
        "--at": at,
        "--history": history,
        "--against": against,
    }
    if not with_cluster and (needless := [option for option, value in given.items() if value is not None]):
        raise InputError(f"{needless[0]} needs a cluster to look at: pass --kubeconfig FILE or --cluster FILE, too")

    from forecast_scheduler.commands.policy.policy_documents import in_place_for, read_file, read_in_place
    from forecast_scheduler.commands.policy.policy_tables import document_json, document_table, notes
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs

    read = read_file(file, shell.settings)
    against = against or in_place_for(file, shell.settings, has_server=has_server)
    access = shell.cluster_access(kubeconfig, context, cluster)
    in_place = read_in_place(against, shell.settings, access) if with_cluster else None
    figures: dict[str, Any] = {"file": str(file), **document_json(read.document)}
    shell.show(document_table(read.document, str(file)), notes(read.document))
    if in_place is not None:
        inputs = Inputs(cluster, access, models, prometheus, history, moment)
        figures |= {"against": in_place.where, "cluster": _compare(shell, inputs, in_place, read, top)}
    write_figures(json, figures)


def _compare(shell: Shell, inputs: Inputs, in_place: ReadPolicies, read: ReadPolicies, top: int) -> dict[str, Any]:
    """Print what the policies read would change against those in place; returns the figures."""
    from forecast_scheduler.commands.live_placing import open_placing
    from forecast_scheduler.commands.policy.followed_policies import provider_of
    from forecast_scheduler.commands.policy.policy_documents import alike
    from forecast_scheduler.commands.policy.policy_survey import moves, survey
    from forecast_scheduler.commands.policy.policy_tables import (
        check_json,
        choices_table,
        moves_table,
        survey_lines,
        unread_lines,
    )
    from forecast_scheduler.settings.feature_options import policy_defaults
    from placement.policies.rules import unread_namespaces

    provider = provider_of(in_place, policy_defaults(shell.settings))
    with open_placing(shell.settings, inputs, provider) as (scorer, background, placing):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()
        pods = placing.pods()
        rules = [*in_place.policies.rules, *read.policies.rules]
        unread = unread_namespaces(rules, (pod.namespace for pod in pods), placing.labels_of)
        surveyed = survey(
            pods,
            lambda pod: str(scorer.service_of(pod)),
            lambda pod: in_place.policies.choice(pod, placing.labels_of),
            lambda pod: read.policies.choice(pod, placing.labels_of),
            alike(in_place, read),
            top=top,
        )
        found = moves(surveyed.touched, lambda pod, policy, rather: placing.best_node(pod, policy, rather=rather))
    shell.show(choices_table(surveyed))
    if found:
        shell.show(moves_table(found))
    shell.say(f"compared with {in_place.where}")
    shell.show((*unread_lines(unread), *survey_lines(surveyed, found)))
    return check_json(surveyed, found, unread)
