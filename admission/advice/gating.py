"""What does a new pod ask of the advisor, and is it held? Pure: the pod as JSON in, the scheduling gates that it gets
out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from admission.advice.options import AdviceGateOptions
from placement.advice_gate import ADVICE, AdviceMode, labelled_mode, why_not_held


@dataclass(frozen=True, slots=True)
class NewPod:
    """What of a new pod chooses its policy. Implements placement.policies.policy.Choosable."""

    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


ByPolicy = Callable[[NewPod], AdviceMode | None]
"""What the policy of a pod says of advice; None = nothing."""


def asked_mode(
    pod: Mapping[str, Any],
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    options: AdviceGateOptions,
    by_policy: ByPolicy = lambda pod: None,
) -> AdviceMode:
    """Return what a pod asks for; OFF also for one that is left alone whatever its labels say. Never raises.

    namespace, namespace_labels : of the request; None = labels not known, which ask for nothing
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        return AdviceMode.OFF
    labels, annotations = _texts(metadata.get("labels")), _texts(metadata.get("annotations"))
    unlabelled = by_policy(NewPod(namespace, labels, annotations)) or options.unlabelled
    mode = labelled_mode(labels, namespace_labels or {}, unlabelled)
    if mode is AdviceMode.OFF or why_not_held(
        namespace,
        scheduler_name=spec.get("schedulerName") or "default-scheduler",
        scheduler_names=options.scheduler_names,
        excluded_namespaces=options.excluded_namespaces,
        owner_kind=_controller_kind(metadata.get("ownerReferences")),
        host_network=spec.get("hostNetwork") is True,
        node_name=spec.get("nodeName") or "",
        annotations=annotations,
    ):
        return AdviceMode.OFF
    return mode


def gates_with_ours(
    pod: Mapping[str, Any],
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    options: AdviceGateOptions,
    by_policy: ByPolicy = lambda pod: None,
) -> list[Any] | None:
    """Return the whole new spec.schedulingGates, None = the pod is not held, or is so already. Never raises."""
    if asked_mode(pod, namespace, namespace_labels, options, by_policy) is not AdviceMode.ADVISE:
        return None
    gates = pod["spec"].get("schedulingGates")
    there = gates if isinstance(gates, list) else []
    if any(isinstance(gate, Mapping) and gate.get("name") == ADVICE for gate in there):
        return None
    return [*there, {"name": ADVICE}]


def _texts(of: object) -> Mapping[str, str]:
    return {k: v for k, v in of.items() if isinstance(v, str)} if isinstance(of, Mapping) else {}


def _controller_kind(references: object) -> str:
    for one in references if isinstance(references, list) else ():
        if isinstance(one, Mapping) and one.get("controller") is True:
            kind = one.get("kind")
            return kind if isinstance(kind, str) else ""
    return ""
