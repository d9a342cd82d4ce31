"""What the bindings make of one pod, and why: each binding's fate, and the pod before and after. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import yaml

from admission.templates.matching import PodFacts, means, pod_facts
from admission.templates.objects import PodConditions, SchedulerConfigBinding
from admission.templates.pod_shaping import Shaped, shape
from admission.templates.shaping_annotations import CONTROL_ANNOTATION, TEMPLATES_ANNOTATION
from admission.templates.skip_reasons import SkipReason
from admission.templates.template_set import TemplateSet
from forecast_scheduler.commands.render.pod_object import PodObject
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo

APPLIED: Final = "applied"
APPLIED_IN_PART: Final = "applied in part"
NOT_MATCHED: Final = "not matched"


class Canaries(Enum):
    """Whether the pod is shown as if trials had chosen it, also where it records something else."""

    IN = "in"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a binding.

    outcome : applied, applied in part, not matched, or a SkipReason in words
    message : why, one sentence; '' = there is nothing to add
    """

    binding: str
    template: str
    outcome: str
    message: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """before, after: the whole pod; fates: by priority, as bindings are applied."""

    pod: PodObject
    info: PodInfo
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    shaped: Shaped
    fates: tuple[Fate, ...]

    @property
    def is_changed(self) -> bool:
        """Whether anything is written on the pod."""
        return self.before != self.after


def render_pod(
    pod: PodObject,
    templates: TemplateSet,
    namespace_labels: Mapping[str, str] | None,
    canaries: Canaries | None = None,
) -> Rendering:
    """Apply all bindings.

    namespace_labels : None = not known
    canaries         : None = as the pod records it, and in where it records nothing

    Raises InputError for what the API server would not take for a pod.
    """
    pod = pod.created_anew()
    if canaries is not None:
        pod = pod.without_record()
    info = decode_pod(pod.pod)
    point = 1.0 if canaries is Canaries.OUT else 0.0
    shaped = shape(pod.pod, pod.namespace, namespace_labels, templates, lambda binding: point)
    ordered = sorted(templates.bindings.values(), key=lambda one: (-one.priority, one.name))
    facts = pod_facts(pod.pod["metadata"], pod.namespace, namespace_labels)
    fates = tuple(_fate(one, templates, shaped, facts) for one in ordered)
    return Rendering(pod, info, pod.pod, with_shape(pod.pod, shaped), shaped, fates)


def with_shape(pod: Mapping[str, Any], shaped: Shaped) -> dict[str, Any]:
    """The pod with its new affinity and annotations; the one that was passed stays as it is."""
    made = dict(pod)
    if shaped.affinity is not None:
        made["spec"] = dict(made.get("spec") or {}) | {"affinity": shaped.affinity}
    if shaped.annotations:
        metadata = dict(made.get("metadata") or {})
        annotations = dict(metadata.get("annotations") or {}) | dict(shaped.annotations)
        metadata["annotations"] = {name: text for name, text in annotations.items() if text is not None}
        made["metadata"] = metadata
    return made


def affinity_diff(rendering: Rendering) -> str:
    """Affinity and record before and after, as a unified diff; '' = nothing changes."""
    before, after = (_yaml(_essence(pod)).splitlines() for pod in (rendering.before, rendering.after))
    lines = difflib.unified_diff(
        before, after, f"{rendering.pod.what}, before", "after", n=max(len(before), 3), lineterm=""
    )
    return "\n".join(lines)


def pod_yaml(rendering: Rendering) -> str:
    """The whole pod after."""
    return _yaml(rendering.after)


def _essence(pod: Mapping[str, Any]) -> dict[str, Any]:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    ours = {name: annotations[name] for name in (TEMPLATES_ANNOTATION, CONTROL_ANNOTATION) if name in annotations}
    affinity = (pod.get("spec") or {}).get("affinity")
    shown: dict[str, Any] = {"metadata": {"annotations": ours}} if ours else {}
    return shown | ({"spec": {"affinity": affinity}} if affinity else {})


def _yaml(shown: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(shown), sort_keys=False, width=110, allow_unicode=True) if shown else ""


def _fate(binding: SchedulerConfigBinding, templates: TemplateSet, shaped: Shaped, facts: PodFacts) -> Fate:
    template = "" if binding.template is None else str(binding.template)
    of_binding = [one for one in shaped.skipped if one.binding == binding.name]
    refused = next((one.message for one in of_binding if one.reason is SkipReason.ARGUMENTS), "")
    skipped = next((one for one in of_binding if one.reason is not SkipReason.ARGUMENTS), None)
    applied = next((one for one in shaped.applied if one.binding == binding.name), None)
    if applied is not None:
        trial, used = "", f"{template} version {applied.version}" if applied.version else template  # files have none
        if binding.suspended:
            kept = "the pod has what it gave before, new pods come without it"
            return Fate(binding.name, used, SkipReason.SUSPENDED.value, kept)
        if applied.canary and binding.canary_percent is not None:
            trial = f"on trial: so are {binding.canary_percent} % of the pods, this one as if it were chosen"
        of_pod = ", ".join(f"{name} {value}" for name, value in applied.arguments.items())
        said = [refused or (f"by arguments of the pod: {of_pod}" if of_pod else ""), trial]
        if skipped is not None:
            said.insert(0, skipped.message.removeprefix(f"{APPLIED_IN_PART}; "))
        return Fate(binding.name, used, APPLIED if skipped is None else APPLIED_IN_PART, "; ".join(filter(None, said)))
    if skipped is not None:
        why = "; ".join(filter(None, (skipped.message, refused)))
        return Fate(binding.name, template, skipped.reason.value.replace("_", " "), why)
    if (problem := templates.problems.get(binding.name)) is not None:
        return Fate(binding.name, template, SkipReason.BROKEN.value, problem.message)
    return Fate(binding.name, template, NOT_MATCHED, _why_not(binding.pods, facts))


def _why_not(wanted: PodConditions, facts: PodFacts) -> str:
    """The conditions that do not hold, in words; each is asked about by itself."""
    reasons = []
    if not means(PodConditions(namespaces=wanted.namespaces), facts):
        reasons.append(f"namespace {facts.namespace} is none of {', '.join(wanted.namespaces[:5])}")
    if not means(PodConditions(namespace_selector=wanted.namespace_selector), facts):
        if facts.namespace_labels is None:
            reasons.append(f"the labels of namespace {facts.namespace} are not known: pass a cluster")
        else:
            reasons.append(f"namespaceSelector does not match the labels of namespace {facts.namespace}")
    if not means(PodConditions(selector=wanted.selector), facts):
        reasons.append("selector does not match the pod's labels")
    if not means(PodConditions(owner=wanted.owner), facts):
        owner = f"its top owner is {facts.owner_kind}/{facts.owner_name}" if facts.owner_kind else "it has no owner"
        reasons.append(owner)
    for name, value in wanted.annotations.items():
        if not means(PodConditions(annotations={name: value}), facts):
            there = f"is {facts.annotations[name][:60]!r}" if name in facts.annotations else "is missing"
            reasons.append(f"annotation {name} {there}")
    return "; ".join(reasons)
