"""What the bindings make of one pod, and why: each binding's fate, the pod before and after, and how people and
programs read it. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import yaml

from admission.templates.applied_bindings import SkipReason
from admission.templates.matching import MatchedPod, means, pod_facts
from admission.templates.pod_shaping import Shaped, shape
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION
from admission.templates.template_objects import PodConditions, SchedulerConfigBinding
from admission.templates.template_set import TemplateSet
from forecast_scheduler.commands.render.pod_object import PodObject
from forecast_scheduler.commands.render.template_sources import Templates
from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from placement.policies.policy import ChosenPolicy

APPLIED: Final = "applied"
APPLIED_IN_PART: Final = "applied in part"
NOT_MATCHED: Final = "not matched"

UNSHAPED_NAMESPACES: Final = ("kube-system", "kube-node-lease", "forecast-scheduler")
"""Namespaces that deploy/base/webhook/configuration.yaml leaves out; the setting `excluded` is about something else."""

_MOST_NOT_MATCHED = 20


@dataclass(frozen=True, slots=True)
class BindingFate:
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
    fates: tuple[BindingFate, ...]

    @property
    def is_changed(self) -> bool:
        """Whether anything is written on the pod."""
        return self.before != self.after


def render_pod(
    pod: PodObject,
    templates: TemplateSet,
    namespace_labels: Mapping[str, str] | None,
) -> Rendering:
    """Apply all bindings.

    namespace_labels : None = not known

    Raises InputError for what the API server would not take for a pod.
    """
    pod = pod.created_anew()
    info = decode_pod(pod.pod)
    shaped = shape(pod.pod, pod.namespace, namespace_labels, templates)
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
    ours = {name: text for name, text in annotations.items() if name == TEMPLATES_ANNOTATION}
    affinity = (pod.get("spec") or {}).get("affinity")
    shown: dict[str, Any] = {"metadata": {"annotations": ours}} if ours else {}
    return shown | ({"spec": {"affinity": affinity}} if affinity else {})


def _yaml(shown: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(shown), sort_keys=False, width=110, allow_unicode=True) if shown else ""


def _fate(binding: SchedulerConfigBinding, templates: TemplateSet, shaped: Shaped, facts: MatchedPod) -> BindingFate:
    template = "" if binding.template is None else str(binding.template)
    of_binding = [one for one in shaped.skipped if one.binding == binding.name]
    refused = next((one.message for one in of_binding if one.reason is SkipReason.ARGUMENTS), "")
    skipped = next((one for one in of_binding if one.reason is not SkipReason.ARGUMENTS), None)
    applied = next((one for one in shaped.applied if one.binding == binding.name), None)
    if applied is not None:
        used = f"{template} version {applied.version}" if applied.version else template  # files have none
        if binding.suspended:
            kept = "the pod has what it gave before, new pods come without it"
            return BindingFate(binding.name, used, SkipReason.SUSPENDED.value, kept)
        of_pod = ", ".join(f"{name} {value}" for name, value in applied.arguments.items())
        said = [refused or (f"by arguments of the pod: {of_pod}" if of_pod else "")]
        if skipped is not None:
            said.insert(0, skipped.message.removeprefix(f"{APPLIED_IN_PART}; "))
        return BindingFate(
            binding.name, used, APPLIED if skipped is None else APPLIED_IN_PART, "; ".join(filter(None, said))
        )
    if skipped is not None:
        why = "; ".join(filter(None, (skipped.message, refused)))
        return BindingFate(binding.name, template, skipped.reason.value.replace("_", " "), why)
    if (problem := templates.problems.get(binding.name)) is not None:
        return BindingFate(binding.name, template, SkipReason.BROKEN.value, problem.message)
    return BindingFate(binding.name, template, NOT_MATCHED, _why_not(binding.pods, facts))


def _why_not(wanted: PodConditions, facts: MatchedPod) -> str:
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


def fate_lines(rendering: Rendering, source: str) -> list[str]:
    """What became of each binding, one line each; of those that do not mean the pod the first ones."""
    fates = rendering.fates
    if not fates:
        return [f"{rendering.pod.what}: there are no bindings in {source}"]
    n_applied = sum(fate.outcome in (APPLIED, APPLIED_IN_PART) for fate in fates)
    lines = [f"{rendering.pod.what}: {n_applied} of {len(fates)} bindings in {source} apply"]
    apart = [fate for fate in fates if fate.outcome == NOT_MATCHED]
    shown = [fate for fate in fates if fate.outcome != NOT_MATCHED] + apart[:_MOST_NOT_MATCHED]
    for fate in shown:
        why = f": {fate.message}" if fate.message else ""
        lines.append(f"  {fate.binding} ({fate.template}) {fate.outcome}{why}")
    if len(apart) > _MOST_NOT_MATCHED:
        lines.append(f"  and {len(apart) - _MOST_NOT_MATCHED} more that are not matched")
    return lines


def remark_lines(rendering: Rendering) -> list[str]:
    """What one should know before trusting it."""
    lines = list(rendering.shaped.remarks)
    if rendering.pod.is_stored:
        lines.append(
            "the pod was created already and has what templates gave it then; this is what would be made of it if it, "
            "as it is, came once more"
        )
    if rendering.info.owner.kind == "DaemonSet":
        lines.append("pods of a DaemonSet do not reach the webhook as it is shipped (deploy/base/webhook)")
    if rendering.pod.namespace in UNSHAPED_NAMESPACES:
        lines.append(
            f"pods of namespace {rendering.pod.namespace} do not reach the webhook as it is shipped "
            "(deploy/base/webhook)"
        )
    if "matchLabelKeys" in str(rendering.shaped.affinity):
        lines.append("matchLabelKeys: the API server adds the pod's own values to labelSelector when it stores the pod")
    return lines


def figures_of(rendering: Rendering, read: Templates, chosen: ChosenPolicy | None) -> dict[str, Any]:
    """The same for programs."""
    told = [one for one in rendering.shaped.skipped if one.reason in _WARNED or one.lost_keys]
    return {
        "pod": rendering.pod.what,
        "templates": read.source,
        "changed": rendering.is_changed,
        "bindings": [asdict(fate) for fate in rendering.fates],
        "warnings": [*rendering.shaped.remarks, *(f"{one.binding}: {one.message}" for one in told), *read.warnings],
        "affinity": (rendering.after.get("spec") or {}).get("affinity"),
        "annotations": dict(rendering.shaped.annotations),
        "policy": None if chosen is None else {"name": chosen.policy.name, "because": chosen.because},
    }


_WARNED = frozenset(
    {
        SkipReason.ARGUMENTS,
        SkipReason.BROKEN,
        SkipReason.CONTRADICTION,
        SkipReason.TOO_LARGE,
        SkipReason.UNREADABLE,
    }
)
