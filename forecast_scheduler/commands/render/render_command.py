"""`render`: what the templates would make of a pod, before anything is applied."""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.errors import InputError, UnknownName
from forecast_scheduler.commands.command_options import (
    ClusterOption,
    ConfigOption,
    ContextOption,
    JsonOption,
    KubeconfigOption,
    PoliciesOption,
    TemplatesOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubernetes import client

    from forecast_scheduler.commands.render.pod_object import PodObject
    from kube.client.cluster_access import ClusterAccess


class Output(Enum):
    """What is printed of the pod."""

    DIFF = "diff"
    YAML = "yaml"


Pod = Annotated[
    str,
    typer.Argument(
        metavar="POD",
        help="namespace/name of a pod of the cluster, or a file with the manifest of a Pod, Deployment, StatefulSet, "
        "Job or the like.",
    ),
]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="What changes, or the whole pod as it would be created.")
]


def render(
    pod: Pod,
    templates: TemplatesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    policies: PoliciesOption = None,
    output: OutputOption = Output.DIFF,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show what templates and bindings make of a pod, and why: nothing is applied.

    With --templates no cluster is needed.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)
    access = shell.cluster_access(kubeconfig, context, cluster)

    from forecast_scheduler.commands.policy.policy_documents import open_choice
    from forecast_scheduler.commands.render.rendered_pod import (
        affinity_diff,
        fate_lines,
        figures_of,
        pod_yaml,
        remark_lines,
        render_pod,
    )
    from forecast_scheduler.commands.render.template_sources import open_templates
    from kube.decoding.decoding import decode_pod

    api = cache(lambda: _api(access))
    wanted = _pod(pod, cluster, api)
    # If no cluster is named, files alone are enough.
    has_server = cluster is None and (access.is_named or not templates or not Path(pod).is_file())
    read = open_templates(templates, cluster, api)
    for warning in read.warnings:
        shell.err.print(warning, highlight=False, markup=False, soft_wrap=True)
    labels = _namespace_labels(wanted.namespace, cluster, api if has_server else None)
    rendering = render_pod(wanted, read.set, labels)
    choose = open_choice(policies, shell.settings, access, has_server=has_server)
    chosen = None
    if choose is not None:
        after = decode_pod(dict(rendering.after))
        chosen = choose(after, lambda namespace: labels if namespace == after.namespace else None)

    if output is Output.YAML:
        shell.out.print(pod_yaml(rendering).rstrip("\n"), highlight=False, markup=False, soft_wrap=True)
        told = shell.err  # standard output can be passed on to kubectl
    else:
        told = shell.out
    lines = [*fate_lines(rendering, read.source), *remark_lines(rendering)]
    if chosen is not None:
        lines.append(f"placed by policy {chosen.policy.name}" + (f" ({chosen.because})" if chosen.because else ""))
    for line in lines:
        told.print(line, highlight=False, markup=False, soft_wrap=True)
    if output is Output.DIFF:
        shell.say(affinity_diff(rendering) or "nothing changes: the pod stays as it is")
    write_figures(json, figures_of(rendering, read, chosen))


def _pod(named: str, cluster: Path | None, api: Callable[[], client.ApiClient]) -> PodObject:
    from forecast_scheduler.commands.render.pod_object import pod_of_manifest, pods_of_cluster_file, split_name
    from forecast_scheduler.commands.render.template_sources import pod_of_server

    path = Path(named)
    if path.is_file():
        return pod_of_manifest(path)
    namespace, name = split_name(named)
    if cluster is None:
        return pod_of_server(api(), namespace, name)
    found = pods_of_cluster_file(cluster, [(namespace, name)])
    if not found:
        raise UnknownName("pod", named, [])
    return found[namespace, name]


def _api(access: ClusterAccess) -> client.ApiClient:
    try:
        return access.client()
    except InputError as error:
        if access.is_named:
            raise
        raise InputError(f"{error}; templates from files (--templates FILE) and a manifest need none") from error


def _namespace_labels(
    namespace: str, cluster: Path | None, api: Callable[[], client.ApiClient] | None
) -> Mapping[str, str] | None:
    """None = not known."""
    from forecast_scheduler.commands.render.pod_object import objects_of_file
    from forecast_scheduler.commands.render.template_sources import server_labels

    if api is not None:
        return server_labels(api(), namespace)
    for one in objects_of_file(cluster) if cluster is not None else ():
        metadata: Any = one.get("metadata")
        if one.get("kind") == "Namespace" and isinstance(metadata, dict) and metadata.get("name") == namespace:
            labels = metadata.get("labels")
            return labels if isinstance(labels, dict) else {}
    return None
