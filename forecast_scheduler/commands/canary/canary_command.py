"""`canary`: what bindings do to the predicted peaks of nodes, and what one on trial would do to all of its pods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from base.errors import InputError, UnknownName
from forecast_scheduler.commands.command_options import (
    AtOption,
    ClusterOption,
    ConfigOption,
    JsonOption,
    KubeconfigOption,
    ModelsOption,
    PoliciesOption,
    PrometheusOption,
    RecordedOption,
    TemplatesOption,
    VerboseOption,
    parse_moment,
    policies_option,
)
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from forecast_scheduler.commands.canary.trial_for_all import ControlService, ExpectedPlacing, WhatIf
    from forecast_scheduler.commands.render.pod_object import PodObject
    from scorer.scorer import Scorer

_SYNC_SECONDS = 120.0
_MOST_BINDINGS = 200
_SEED = 0

BindingArgument = Annotated[
    str | None,
    typer.Argument(metavar="[BINDING]", help="Name of a SchedulerConfigBinding. Default: all that have pods."),
]
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=1, help="Most services of the control group to show.")
]


def canary(
    binding: BindingArgument = None,
    kubeconfig: KubeconfigOption = None,
    cluster: ClusterOption = None,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    templates: TemplatesOption = None,
    policies: PoliciesOption = None,
    top: TopOption = 20,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Compare pods that bindings shaped with those that a trial passed over, by the expected peaks of their nodes.

    With BINDING also: where the pods of its control group would go were it applied to all.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    moment = parse_moment(at)

    import numpy as np

    from admission.templates.effects import effect_of
    from admission.templates.shaped_pods import seated_pods
    from forecast_scheduler.commands.canary.canary_tables import (
        FORECAST_ONLY,
        difference_lines,
        effects_table,
        figures_of,
        what_if_lines,
        what_if_table,
    )
    from forecast_scheduler.commands.canary.trial_for_all import open_canary
    from forecast_scheduler.commands.policy.followed_policies import read_policies
    from forecast_scheduler.commands.policy.policy_documents import open_choice
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.settings.document import with_options

    inputs = Inputs(cluster, kubeconfig, models, prometheus, history, moment)
    found: list[WhatIf] | None = None
    left_out = 0
    server = kubeconfig or shell.settings.scorer.kubeconfig
    choose = open_choice(policies, shell.settings, server, has_server=cluster is None)
    settings = with_options(shell.settings, {"policies": policies_option(policies)})
    provider = None if choose is None else read_policies(settings, server)
    with open_canary(settings, inputs, choose, provider) as (scorer, background, placing, shaped):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()
        scorer.tables.refresh_overview()
        with scorer.tables.reading():
            known = shaped.largest(_MOST_BINDINGS)
            is_there = binding is None or bool(shaped.pods_of(binding))
        if binding is not None and not is_there:
            raise UnknownName("binding with pods", binding, sorted(known))
        rng = np.random.default_rng(_SEED)
        seated = seated_pods(scorer, shaped, known if binding is None else [binding], most=_MOST_BINDINGS)
        effects = [effect_of(one, rng, shell.settings.hot_share) for one in seated]
        if binding is not None:
            found, left_out = _what_if(shell, binding, inputs.cluster, templates, server, top, scorer, placing)
    if not effects:
        shell.say("no pod that sits on a node records a binding: nothing was shaped, or the webhook is not in use")
    else:
        shell.show(effects_table(effects, shell.settings.hot_share), difference_lines(effects))
    if found is not None and binding is not None:
        shell.show(what_if_table(binding, found), what_if_lines(found, left_out))
    shell.say(FORECAST_ONLY)
    write_figures(json, figures_of(effects, found, left_out))


def _what_if(
    shell: Shell,
    binding: str,
    cluster: Path | None,
    templates: list[Path] | None,
    kubeconfig: Path | None,
    top: int,
    scorer: Scorer,
    placing: ExpectedPlacing,
) -> tuple[list[WhatIf] | None, int]:
    """For the control group, and how many services are left out; None = there is none, or the template is not known."""
    from forecast_scheduler.commands.canary.trial_for_all import control_services, what_if
    from forecast_scheduler.commands.render.template_sources import open_templates
    from kube.client.kubernetes_client import api_client

    services = control_services(scorer, binding)
    if not services:
        return None, 0
    try:
        read = open_templates(templates, cluster, lambda: api_client(kubeconfig))
    except InputError as error:
        if templates:
            raise
        shell.say(f"where the control pods would go is not told: {error}")
        return None, 0
    if binding not in read.set.bindings:
        shell.say(f"where the control pods would go is not told: {read.source} has no binding {binding}")
        return None, 0
    asked = services[:top]
    objects = _objects(asked, cluster, kubeconfig)
    return what_if(asked, binding, read.set, objects, placing), len(services) - len(asked)


def _objects(
    asked: list[ControlService], cluster: Path | None, kubeconfig: Path | None
) -> dict[tuple[str, str], PodObject]:
    from forecast_scheduler.commands.render.pod_object import pods_of_cluster_file
    from forecast_scheduler.commands.render.template_sources import pod_of_server
    from kube.client.kubernetes_client import api_client

    names = [(one.pod.namespace, one.pod.name) for one in asked]
    if cluster is not None:
        return pods_of_cluster_file(cluster, names)
    api = api_client(kubeconfig)
    found = {}
    for namespace, name in names:
        try:
            found[namespace, name] = pod_of_server(api, namespace, name)
        except UnknownName:  # it has gone since
            continue
    return found
