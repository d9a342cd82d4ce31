"""The pod as the advisor is asked about it, and the affinity that it gets. Pure: JSON in, JSON out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from placement.advice_gate import ADVICE
from placement.preferred_nodes import PREFERRED, PreferredNode, preferred_terms

_SECRETS: Final = frozenset(
    {"env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}
)
"""Of containers: what may hold secrets, and says nothing about nodes."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole pod once more."""


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
