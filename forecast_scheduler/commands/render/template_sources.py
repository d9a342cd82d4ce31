"""Templates and bindings as the commands take them: from files, or from the cluster as they are there now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from admission.templates.template_decoding import BINDINGS, GROUP, NODE_CONFIGS, POD_CONFIGS, object_from_manifest
from admission.templates.template_objects import NodeSchedulerConfig, PodSchedulerConfig, SchedulerConfigBinding
from admission.templates.template_set import TemplateSet
from base.errors import InputError, UnknownName
from forecast_scheduler.commands.render.pod_object import PodObject, objects_of_file, pod_path
from kube.client.kubernetes_steps import Request
from kube.decoding.watched_kinds import Watched, decode_page

if TYPE_CHECKING:
    from kubernetes import client

T = TypeVar("T")

_PAGE: Final = 500
_READ_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Templates:
    """source: where they are from, for people; warnings: objects that could not be read, one sentence each."""

    set: TemplateSet
    source: str
    warnings: tuple[str, ...] = ()


def templates_of_files(paths: Sequence[Path], *, among_others: bool = False) -> Templates:
    """All objects of these files. among_others: objects of other groups may be in them, too, and are passed over.

    Raises InputError for an object that is none of ours, is there twice, or cannot be used.
    """
    found: dict[tuple[str, str], Any] = {}
    file_of: dict[tuple[str, str], Path] = {}
    for path in _files(paths):
        for manifest in objects_of_file(path):
            if among_others and str(manifest.get("apiVersion", "")).partition("/")[0] != GROUP:
                continue
            try:
                one = object_from_manifest(manifest)
            except InputError as error:
                raise InputError(f"{path}: {error}") from error
            key = (type(one).__name__, one.name)
            if key in found:
                raise InputError(f"{path}: {key[0]} {one.name} is in {file_of[key]} already: leave one of them out")
            found[key], file_of[key] = one, path
    made = _set_of(found.values())
    for name, problem in made.problems.items():
        where = file_of[SchedulerConfigBinding.__name__, name]
        raise InputError(f"{where}: SchedulerConfigBinding {name}: {problem.message}")
    return Templates(made, ", ".join(str(path) for path in paths))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Of a directory those right in it."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        files = sorted(one for one in path.iterdir() if one.suffix in (".yaml", ".yml", ".json"))
        if not files:
            raise InputError(f"{path} holds no .yaml, .yml or .json file: name the file or directory of the templates")
        yield from files


def templates_of_server(api: client.ApiClient) -> Templates:
    """All objects that the API server has. Raises InputError where it does not know these kinds."""
    objects: list[Any] = []
    warnings: list[str] = []
    _list(api, NODE_CONFIGS, objects, warnings)
    _list(api, POD_CONFIGS, objects, warnings)
    _list(api, BINDINGS, objects, warnings)
    return Templates(_set_of(objects), api.configuration.host, tuple(warnings))


def open_templates(
    files: Sequence[Path] | None, cluster: Path | None, api: Callable[[], client.ApiClient]
) -> Templates:
    """Those of the files, else those in the exported cluster, else those of the API server."""
    if files:
        return templates_of_files(files)
    if cluster is None:
        return templates_of_server(api())
    found = templates_of_files([cluster], among_others=True)
    if not found.set.bindings:
        raise InputError(f"{cluster} holds no SchedulerConfigBinding: pass the templates with --templates FILE")
    return found


def pod_of_server(api: client.ApiClient, namespace: str, name: str) -> PodObject:
    """A pod as it is stored."""
    body = _get(api, pod_path(namespace, name), "read pods")
    if body is None:
        raise UnknownName("pod", f"{namespace}/{name}", [])
    return PodObject(msgspec.json.decode(body, type=dict[str, Any]), f"pod {namespace}/{name}")


def server_labels(api: client.ApiClient, namespace: str) -> Mapping[str, str] | None:
    """Labels of a namespace; None = there is none of that name."""
    body = _get(api, f"/api/v1/namespaces/{namespace}", "read namespaces")
    if body is None:
        return None
    labels = msgspec.json.decode(body, type=dict[str, Any]).get("metadata", {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _set_of(objects: Any) -> TemplateSet:
    listed = list(objects)
    return TemplateSet.of(
        [one for one in listed if isinstance(one, NodeSchedulerConfig)],
        [one for one in listed if isinstance(one, PodSchedulerConfig)],
        [one for one in listed if isinstance(one, SchedulerConfigBinding)],
    )


def _list(api: client.ApiClient, watched: Watched[T], objects: list[Any], warnings: list[str]) -> None:
    token = ""
    while True:
        query = {"limit": str(_PAGE)} | ({"continue": token} if token else {})
        body = _get(api, watched.path, f"list {watched.plural}", query)
        if body is None:
            raise InputError(
                f"the API server knows no {watched.plural}: install the CustomResourceDefinitions of deploy/crds, or "
                "pass templates from files with --templates"
            )
        page = decode_page(watched, body)
        objects += page.objects
        warnings += page.undecodable
        token = page.continue_token
        if not token:
            return


def _get(api: client.ApiClient, path: str, what: str, query: Mapping[str, str] | None = None) -> bytes | None:
    """Return the body of an answer; None = there is nothing there (404). what: is asked for, for errors."""
    from kube.client.kubernetes_client import ask, required

    answer = ask(api, Request(path, query=query or {}), seconds=_READ_SECONDS)
    return None if answer.status == 404 else required(answer, what).body
