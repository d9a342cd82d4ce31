"""`explain`: which nodes would be best for a pod, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from base.errors import InputError, UnknownName
from forecast_scheduler.commands.command_options import (
    AtOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    DomainOption,
    JsonOption,
    KubeconfigOption,
    ModelsOption,
    PoliciesOption,
    ProfileOption,
    PrometheusOption,
    RecordedOption,
    ShareOption,
    VerboseOption,
    parse_moment,
    policies_option,
)
from forecast_scheduler.commands.remote_server_options import CaOption, TokenOption
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from cluster.tables.cluster_file import ClusterObjects
    from forecast_scheduler.commands.explain.pod_state import PodState
    from forecast_scheduler.settings.document import Settings
    from kube.client.cluster_access import ClusterAccess
    from kube.objects.objects import PodInfo
    from scheduler.scheduling_answers import QueuedPod
    from scorer.scorer import Scorer

    AskQueue = Callable[[PodInfo], QueuedPod | None]

_SYNC_SECONDS = 120.0
_ASK_SECONDS = 10.0
_NOT_FOUND = 404
_OTHER = "default-scheduler"

Pod = Annotated[
    str,
    typer.Argument(metavar="POD", help="namespace/name of a pod, or a file with the manifest of one (JSON or YAML)."),
]
NodeOption = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NAME", help="Rank only this node; may be given several times."),
]
FiltersOption = Annotated[bool, typer.Option("--filters", help="Also name every node that a filter rejects.")]
LastOption = Annotated[
    bool, typer.Option("--last", help="Say why the pod got its node, from the decision log; the pod may be gone.")
]
LogOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--decisions",
        metavar="FILE",
        help="With --last: the log of extender or schedule, - for standard input; may be given several times. Default: "
        "as in the settings.",
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="URL of a running `schedule` or `advise`: also say what its queue knows of the pod.",
    ),
]
TopOption = Annotated[int, typer.Option("--top", metavar="N", min=1, help="How many of the best nodes to show.")]


def explain(
    pod: Pod,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    node: NodeOption = None,
    filters: FiltersOption = False,
    policies: PoliciesOption = None,
    profile: ProfileOption = None,
    domain: DomainOption = None,
    share_nodes: ShareOption = None,
    top: TopOption = 5,
    server: ServerOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    last: LastOption = False,
    decisions: LogOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Say what a pod waits for, and which node it would get and why: by the filters, policy and scores of the component
    that its schedulerName means.

    The state comes first: held, by which gate and how to release it, queued, reserved, advised, nominated or placed.
    The component is a profile of `schedule`, or the extender with kube-scheduler. The first node is the one that it
    would choose for this cluster. With --last the decision log answers instead. Nothing is written.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    if decisions and not last:
        raise InputError("--decisions names a log of past decisions: add --last to ask it")
    if last:
        _explain_last(shell, pod, decisions or [], json)
        return
    moment = parse_moment(at)

    import msgspec

    from cluster.tables.cluster_file import read_cluster_file
    from forecast_scheduler.commands.explain.explain_pod import open_explaining
    from forecast_scheduler.commands.explain.placing_component import component_of
    from forecast_scheduler.commands.explain.tables import explanation_tables, judgement_lines, rejection_lines, remarks
    from forecast_scheduler.commands.policy.policy_tables import unread_json, unread_lines
    from forecast_scheduler.commands.schedule.dry_run_tables import gap_lines, gaps_json
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs, check_inputs
    from forecast_scheduler.settings.document import with_options
    from forecast_scheduler.settings.feature_options import check_profiles, profile_names

    options: Mapping[str, Any] = {
        "profiles": None if profile is None else profile_names(profile),
        "domain": domain,
        "share_nodes": share_nodes or None,
    }
    settings = with_options(shell.settings, {"policies": policies_option(policies), "schedule": options})
    check_profiles(settings.schedule)
    access = shell.cluster_access(kubeconfig, context, cluster)
    check_inputs(Inputs(cluster, access, models, prometheus, history, moment))
    objects = None if cluster is None else read_cluster_file(cluster)
    inputs = Inputs(cluster, access, models, prometheus, history, moment, objects)
    queue = partial(_queued, settings, server, (token_file, ca, None, None))
    found, state = _pod(pod, objects, settings, access, queue)
    if state is not None:  # at once: what follows needs the whole cluster
        shell.show(state.lines())
    component = component_of(_OTHER if found is None else found.scheduler_name, settings)
    with open_explaining(component, inputs, objects) as explaining:
        explaining.background.wait_synced(_SYNC_SECONDS)
        explaining.background.look_for_model()
        _check_nodes(explaining.scorer, node or [])
        if found is None or not Path(pod).is_file():
            namespace, _, name = pod.partition("/")
            found = explaining.scorer.find_pod(namespace, name)
        explained = explaining.explain(found, node or None, top)
        has_policies = explaining.provider is not None
    shell.show(explanation_tables(explained.explanation))
    lines = [*judgement_lines(explained.judgement, component.remark), *remarks(explained.explanation)]
    if filters:
        lines += rejection_lines(explained.judgement)
    lines += [*unread_lines(explained.namespaces), *gap_lines(explained.gaps, explained.unread)]
    shell.show(lines)
    figures = msgspec.to_builtins(explained.explanation)
    if state is not None:
        figures["state"] = state.to_json()
    if has_policies:
        figures["namespaces_not_known"] = unread_json(explained.namespaces)
    judgement = explained.judgement
    figures["filters"] = {
        "nodes": sorted([*judgement.ranking, *judgement.passed_over]),
        "n_nodes": judgement.n_nodes,
        "rejections": [
            {
                "filter": one.filter,
                "reason": one.reason,
                "nodes": len(one.nodes),
                "preemptible": one.preemptible,
                **({"names": list(one.nodes)} if filters else {}),
            }
            for one in judgement.rejections
        ],
    }
    write_figures(
        json, figures | gaps_json(explained.gaps, explained.unread, () if objects is None else objects.remarks)
    )


def _explain_last(shell: Shell, pod: str, files: list[Path], json: Path | None) -> None:
    from forecast_scheduler.commands.explain.last_decision import (
        decision_lines,
        decision_table,
        last_decision,
        log_files,
    )

    decision = last_decision(pod, log_files(files, shell.settings))
    shell.show(decision_lines(decision))
    if (table := decision_table(decision)) is not None:
        shell.show(table)
    write_figures(json, decision.to_json())


def _check_nodes(scorer: Scorer, named: list[str]) -> None:
    known = [summary.name for summary in scorer.nodes().nodes]
    for name in named:
        if name not in known:
            raise UnknownName("node", name, known)


def _pod(
    named: str, objects: ClusterObjects | None, settings: Settings, access: ClusterAccess, queue: AskQueue
) -> tuple[PodInfo | None, PodState | None]:
    """The pod that a manifest describes, or one of the cluster, of an API server with its state; None = the cluster has
    no such pod."""
    path = Path(named)
    if path.is_file():
        return _from_manifest(path, objects), None
    namespace, slash, name = named.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise InputError(f"pod {named!r} is neither a file nor namespace/name: write for instance shop/cart-7d9-x2x4z")
    if objects is None:
        return _from_server(namespace, name, settings, access, queue)
    return next((pod for pod in objects.pods if (pod.namespace, pod.name) == (namespace, name)), None), None


def _from_server(
    namespace: str, name: str, settings: Settings, access: ClusterAccess, queue: AskQueue
) -> tuple[PodInfo | None, PodState | None]:
    """One pod, asked for before anything is followed: its schedulerName decides what is."""
    from forecast_scheduler.commands.explain.pod_state import state_of_pod
    from forecast_scheduler.commands.explain.read_pod_facts import read_facts
    from kube.client.kubernetes_client import ask, required
    from kube.client.kubernetes_steps import Request
    from kube.decoding.decoding import decode_pod

    api = access.client()
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
    answer = ask(api, Request(path), seconds=_ASK_SECONDS)
    if answer.status == _NOT_FOUND:
        return None, None
    body = required(answer, "read pods", grant="get on them").body
    pod = decode_pod(body)
    facts = replace(read_facts(api, pod, body, settings), queued=queue(pod))
    return pod, state_of_pod(facts)


def _queued(
    settings: Settings, server: str | None, files: tuple[Path | None, Path | None, None, None], pod: PodInfo
) -> QueuedPod | None:
    """What the queue of a running process says of a pod. Raises InputError if it does not answer."""
    if server is None:
        return None

    import msgspec

    from forecast_scheduler.commands.remote_server import asked_scheduler
    from scheduler.scheduling_answers import Queue, QueuedPod
    from scheduler.service.queue_routes import MOST_PODS

    query: Mapping[str, float | str | None] = {"namespace": pod.namespace, "limit": float(MOST_PODS)}
    answer = asked_scheduler(settings.schedule, server, files, "/v1/queue", query, Queue, profile="online")
    return next((msgspec.convert(one, QueuedPod) for one in answer["pods"] if one["uid"] == pod.uid), None)


def _from_manifest(path: Path, objects: ClusterObjects | None) -> PodInfo:
    import msgspec

    from forecast_scheduler.commands.render.pod_object import pod_of_manifest
    from kube.decoding.decoding import decode_pod

    made = pod_of_manifest(path).pod
    pod = decode_pod(made)
    return pod if objects is None else objects.classes.applied(pod, msgspec.json.encode(made))
