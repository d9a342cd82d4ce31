"""JSON of the custom resources -> objects.py. What can be listed and watched, and how it is decoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from admission.templates import conversion, wire
from admission.templates.parameters import check_template
from admission.templates.template_objects import (
    NodeSchedulerConfig,
    PodSchedulerConfig,
    SchedulerConfigBinding,
    Template,
    Value,
)
from base.errors import InputError
from kube.decoding.watched_kinds import Watched

GROUP: Final = "forecast-scheduler.io"
VERSION: Final = "v1alpha1"

CustomResource = NodeSchedulerConfig | PodSchedulerConfig | SchedulerConfigBinding

T = TypeVar("T", NodeSchedulerConfig, PodSchedulerConfig, SchedulerConfigBinding)

_OBJECT: Final = msgspec.json.Decoder(wire.TemplateObjectJson)
_NODE_SPEC: Final = msgspec.json.Decoder(wire.NodeSpecJson)
_POD_SPEC: Final = msgspec.json.Decoder(wire.PodSpecJson)
_BINDING_SPEC: Final = msgspec.json.Decoder(wire.BindingSpecJson)

_UNUSABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InputError)
_LONGEST_NAME: Final = 63


def object_from_manifest(manifest: object) -> CustomResource:
    """One object as a file has it, once it is read from YAML or JSON.

    Raises InputError that names object and field, or says which kinds there are. What the API server would have set
    (uid, generation) may be missing.
    """
    kind = manifest.get("kind") if isinstance(manifest, Mapping) else None
    version = manifest.get("apiVersion") if isinstance(manifest, Mapping) else None
    watched = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if watched is None or version != f"{GROUP}/{VERSION}":
        raise InputError(
            f"an object is {str(version)[:60]} {str(kind)[:60]}: "
            f"must be {GROUP}/{VERSION} and one of {', '.join(_BY_KIND)}"
        )
    try:
        body = msgspec.json.encode(manifest)
    except (msgspec.EncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{watched.singular} cannot be read: {error}") from error
    found: CustomResource = watched.decoded(body)[0]
    if found.problem:
        raise InputError(f"{watched.singular} {found.name}: {found.problem}")
    return found


def _decoded(
    body: bytes | Raw,
    whole: Callable[[wire.TemplateObjectJson], T],
    broken: Callable[[wire.TemplateMetadataJson, str], T],
) -> tuple[T, str]:
    """An object whose spec cannot be used is one with a problem; without a name it is no object (raises)."""
    decoded = _OBJECT.decode(body)
    metadata = decoded.metadata
    try:
        if len(metadata.name) > _LONGEST_NAME:
            raise InputError(f"metadata.name: may have at most {_LONGEST_NAME} characters")
        found = whole(decoded)
    except _UNUSABLE as error:
        found = broken(metadata, _reason(error))
    return found, metadata.resource_version or ""


def _node_config(body: bytes | Raw) -> tuple[NodeSchedulerConfig, str]:
    def whole(decoded: wire.TemplateObjectJson) -> NodeSchedulerConfig:
        metadata, spec = decoded.metadata, _NODE_SPEC.decode(decoded.spec)
        template = NodeSchedulerConfig(
            name=metadata.name,
            uid=metadata.uid or "",
            generation=metadata.generation or 0,
            description=spec.description or "",
            parameters=conversion.parameters(spec.parameters),
            required=conversion.node_terms(spec.required, "spec.required", weighted=False),
            preferred=conversion.node_terms(spec.preferred, "spec.preferred", weighted=True),
        )
        return _checked(template)

    return _decoded(
        body, whole, lambda m, why: NodeSchedulerConfig(m.name, m.uid or "", m.generation or 0, problem=why)
    )


def _pod_config(body: bytes | Raw) -> tuple[PodSchedulerConfig, str]:
    def whole(decoded: wire.TemplateObjectJson) -> PodSchedulerConfig:
        metadata, spec = decoded.metadata, _POD_SPEC.decode(decoded.spec)
        template = PodSchedulerConfig(
            name=metadata.name,
            uid=metadata.uid or "",
            generation=metadata.generation or 0,
            description=spec.description or "",
            parameters=conversion.parameters(spec.parameters),
            affinity=conversion.pod_terms(spec.pod_affinity, "spec.podAffinity"),
            anti_affinity=conversion.pod_terms(spec.pod_anti_affinity, "spec.podAntiAffinity"),
        )
        return _checked(template)

    return _decoded(body, whole, lambda m, why: PodSchedulerConfig(m.name, m.uid or "", m.generation or 0, problem=why))


def _binding(body: bytes | Raw) -> tuple[SchedulerConfigBinding, str]:
    def whole(decoded: wire.TemplateObjectJson) -> SchedulerConfigBinding:
        metadata, spec = decoded.metadata, _BINDING_SPEC.decode(decoded.spec)
        if spec.canary is not None:  # ignored, it would apply to all pods what was meant for some
            raise InputError(
                "spec.canary: is gone: take it out, and name the pods to try it on by namespaces or selector"
            )
        return SchedulerConfigBinding(
            name=metadata.name,
            template=conversion.template_reference(spec.template),
            uid=metadata.uid or "",
            generation=metadata.generation or 0,
            arguments=_arguments(spec),
            pods=conversion.pod_conditions(spec.pods),
            priority=spec.priority,
            on_conflict=conversion.conflict_rule(spec.on_conflict),
            suspended=spec.suspended,
        )

    return _decoded(
        body, whole, lambda m, why: SchedulerConfigBinding(m.name, None, m.uid or "", m.generation or 0, problem=why)
    )


TemplateT = TypeVar("TemplateT", NodeSchedulerConfig, PodSchedulerConfig)


def _checked(template: TemplateT) -> TemplateT:
    checked: Template = template
    check_template(checked)
    return template


def _arguments(spec: wire.BindingSpecJson) -> dict[str, Value]:
    arguments: dict[str, Value] = {}
    for number, one in enumerate(spec.arguments or ()):
        path = f"spec.arguments[{number}]"
        if one.name in arguments:
            raise InputError(f"{path}.name: {one.name} is there twice")
        arguments[one.name] = conversion.argument(one, path)
    return arguments


_PLACE: Final = re.compile(r"^(?P<what>.*?) - at (?:`key` in )?`\$(?P<path>[^`]*)`$", re.DOTALL)


def _reason(error: Exception) -> str:
    """Our own errors name the field first; msgspec's do so last, from `$` = spec."""
    text = str(error)
    if isinstance(error, InputError):
        return text
    place = _PLACE.match(text)
    return f"spec{place['path']}: {place['what']}" if place else f"spec: {text}"


def _path(plural: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/{plural}"


NODE_CONFIGS: Final = Watched(
    "nodeschedulerconfigs", "NodeSchedulerConfig", _path("nodeschedulerconfigs"), _node_config
)
POD_CONFIGS: Final = Watched("podschedulerconfigs", "PodSchedulerConfig", _path("podschedulerconfigs"), _pod_config)
BINDINGS: Final = Watched(
    "schedulerconfigbindings", "SchedulerConfigBinding", _path("schedulerconfigbindings"), _binding
)
_AnyWatched = Watched[NodeSchedulerConfig] | Watched[PodSchedulerConfig] | Watched[SchedulerConfigBinding]
_WATCHED: Final[tuple[_AnyWatched, ...]] = (NODE_CONFIGS, POD_CONFIGS, BINDINGS)
_BY_KIND: Final = {one.singular: one for one in _WATCHED}
