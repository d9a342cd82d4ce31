"""What does a new pod ask of the advisor? Pure: the pod as JSON in, the scheduling gates that hold it or the affinity
that it gets out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from admission.webhook_settings import AdviceGateOptions
from base.errors import InputError
from base.excluded import ExcludedOptions
from forecast.service_key import NO_OWNER, Owner, ServiceKey, service_of_pod
from placement.gate_exemptions import ADVICE, AdviceMode, labelled_mode, why_not_held
from placement.preferred_nodes import PREFERRED, PreferredNode, preferred_terms

_SECRETS: Final = frozenset(
    {"env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}
)
"""Of containers: what may hold secrets, and says nothing about nodes."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole pod once more."""


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
    excluded: ExcludedOptions,
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
        service=_service(namespace, metadata, labels),
        excluded=excluded,
        owner_kind=_controller(metadata.get("ownerReferences")).kind,
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
    excluded: ExcludedOptions,
    by_policy: ByPolicy = lambda pod: None,
) -> list[Any] | None:
    """Return the whole new spec.schedulingGates, None = the pod is not held, or is so already. Never raises."""
    if asked_mode(pod, namespace, namespace_labels, options, excluded, by_policy) is not AdviceMode.ADVISE:
        return None
    gates = pod["spec"].get("schedulingGates")
    there = gates if isinstance(gates, list) else []
    if any(isinstance(gate, Mapping) and gate.get("name") == ADVICE for gate in there):
        return None
    return [*there, {"name": ADVICE}]


def _texts(of: object) -> Mapping[str, str]:
    return {k: v for k, v in of.items() if isinstance(v, str)} if isinstance(of, Mapping) else {}


def _controller(references: object) -> Owner:
    for one in references if isinstance(references, list) else ():
        if isinstance(one, Mapping) and one.get("controller") is True:
            kind, name = one.get("kind"), one.get("name")
            return Owner(kind if isinstance(kind, str) else "", name if isinstance(name, str) else "")
    return NO_OWNER


def _service(namespace: str, metadata: Mapping[str, Any], labels: Mapping[str, str]) -> ServiceKey | None:
    """The service of the pod; None = its object does not say."""
    name = metadata.get("name") or metadata.get("generateName")
    try:
        owner = _controller(metadata.get("ownerReferences"))
        return service_of_pod(namespace, name if isinstance(name, str) else "", owner, pod_labels=labels)
    except InputError:
        return None


def why_not_asked(pod: Mapping[str, Any]) -> str:
    """Return why the advisor is not asked about a pod of the mode `prefer`; '' = it is."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(annotations, Mapping) and ADVICE in annotations:
        return "it was asked about: the API server comes again where another webhook has changed the pod"
    if isinstance(spec, Mapping) and spec.get("schedulingGates"):
        return "a gate holds it: what is best now may not be when that is removed"
    return ""


def pod_to_ask_about(
    raw: msgspec.Raw, question: str, namespace: str, affinity: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return a new pod as the advisor is sent it; None = it cannot be read.

    raw      : the pod as it came
    question : UID of the API server's question, which stands for that of the pod
    affinity : that it gets by templates; None = it keeps its own
    """
    try:
        pod = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    metadata, spec = (pod.get("metadata"), pod.get("spec")) if isinstance(pod, dict) else (None, None)
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return None
    name = metadata.get("name") or metadata.get("generateName") or "pod"
    pod["metadata"] = metadata | {"uid": question, "namespace": namespace, "name": name, "creationTimestamp": None}
    if isinstance(annotations := metadata.get("annotations"), dict):
        annotations.pop(_LAST_APPLIED, None)
    for kind in ("initContainers", "containers"):
        containers = spec.get(kind)
        if isinstance(containers, list):
            spec[kind] = [_without_secrets(one) for one in containers]
    if affinity is not None:
        spec["affinity"] = affinity
    return dict(pod)


def affinity_with(affinity: object, nodes: Sequence[PreferredNode]) -> dict[str, Any] | None:
    """Return the whole affinity with terms for these nodes behind those that are there; None = there is something else
    in its place."""
    whole = _object(affinity)
    of_nodes = None if whole is None else _object(whole.get("nodeAffinity"))
    if whole is None or of_nodes is None:
        return None
    there = of_nodes.get(PREFERRED)
    if there is not None and not isinstance(there, list):
        return None
    return whole | {"nodeAffinity": of_nodes | {PREFERRED: [*(there or ()), *preferred_terms(nodes)]}}


def _object(of: object) -> dict[str, Any] | None:
    return {} if of is None else dict(of) if isinstance(of, Mapping) else None


def _without_secrets(container: object) -> object:
    if not isinstance(container, dict):
        return container
    return {key: value for key, value in container.items() if key not in _SECRETS}
