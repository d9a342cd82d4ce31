"""`explain`: which nodes would be best for a pod, and why."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecast.errors import InputError, UnknownName
from forecast_scheduler.options import ConfigOption, JsonOption, ModelsOption, VerboseOption, parse_moment
from forecast_scheduler.policy_options import PoliciesOption, policies_option
from forecast_scheduler.scorer_inputs import (
    AtOption,
    ClusterOption,
    KubeconfigOption,
    PrometheusOption,
    RecordedOption,
)
from forecast_scheduler.settings import with_options
from forecast_scheduler.shell import check_writable, open_shell, write_json

if TYPE_CHECKING:
    from scorer.cluster.objects import PodInfo
    from scorer.scorer import Scorer

_SYNC_SECONDS = 120.0

Pod = Annotated[
    str,
    typer.Argument(metavar="POD", help="namespace/name of a pod, or a file with the manifest of one (JSON or YAML)."),
]
NodeOption = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NAME", help="Look at these nodes only; may be given several times."),
]
FiltersOption = Annotated[
    bool, typer.Option("--filters", help="Also say which nodes all filters let it go to, and why not elsewhere.")
]
TopOption = Annotated[int, typer.Option("--top", metavar="N", min=1, help="How many of the best nodes to show.")]


def explain(
    pod: Pod,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    node: NodeOption = None,
    filters: FiltersOption = False,
    policies: PoliciesOption = None,
    top: TopOption = 5,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Score all nodes for a pod and say why: contributions, predicted peak before and with it, runner-up and margin."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    moment = parse_moment(at)

    import msgspec

    from forecast_scheduler.explanation_tables import explanation_tables, feasibility_lines, remarks
    from forecast_scheduler.live_placing import open_placing
    from forecast_scheduler.live_policies import read_policies, scored_by_policy
    from forecast_scheduler.live_scorer import Inputs, open_scorer
    from forecast_scheduler.policy_check_tables import unread_json, unread_lines
    from scorer.service.translation import explanation_body

    inputs = Inputs(cluster, kubeconfig, models, prometheus, history, moment)
    feasible = None
    settings = with_options(shell.settings, {"policies": policies_option(policies)})
    provider = read_policies(settings, kubeconfig)
    with ExitStack() as stack:
        if filters:
            scorer, background, placing = stack.enter_context(open_placing(settings, inputs, provider))
        else:
            opened = open_scorer(settings, inputs, scored_by_policy(provider), policies=provider)
            scorer, background = stack.enter_context(opened)
            placing = None
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.measure()
        scorer.tick()
        _check_nodes(scorer, node or [])
        explained = _pod(scorer, pod)
        explanation = scorer.explain(explained, node or None, top=top)
        unread = () if provider is None else provider.unread([explained.namespace])
        if placing is not None:
            feasible = placing.feasibility(explained, None if provider is None else provider.choose(explained).policy)
    for table in explanation_tables(explanation):
        shell.out.print(table)
    for line in remarks(explanation):
        shell.say(line)
    for line in unread_lines(unread):
        shell.say(line)
    figures = msgspec.to_builtins(explanation_body(explanation))
    if provider is not None:
        figures["namespaces_not_known"] = unread_json(unread)
    if feasible is not None:
        for line in feasibility_lines(feasible):
            shell.say(line)
        figures["filters"] = asdict(feasible)
    write_json(json, figures)


def _check_nodes(scorer: Scorer, named: list[str]) -> None:
    known = [summary.name for summary in scorer.nodes()]
    for name in named:
        if name not in known:
            raise UnknownName("node", name, known)


def _pod(scorer: Scorer, named: str) -> PodInfo:
    """A pod of the cluster, or the one a manifest describes."""
    path = Path(named)
    if path.is_file():
        return _from_manifest(path)
    namespace, slash, name = named.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise InputError(f"pod {named!r} is neither a file nor namespace/name: write for instance shop/cart-7d9-x2x4z")
    return scorer.find_pod(namespace, name)


def _from_manifest(path: Path) -> PodInfo:
    import yaml

    from scorer.cluster.decoding import decode_pod

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as a manifest: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} holds no object: pass the manifest of one Pod")
    return decode_pod(document)
