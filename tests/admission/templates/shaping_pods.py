"""Shapes pods in tests, and does to them what the webhook's patch would do; with pods and a template to do it to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from admission.templates.applied_bindings import SkipReason
from admission.templates.pod_shaping import Shaped, shape
from admission.templates.template_set import TemplateSet
from tests.admission.templates.manifests import Manifest, node_config


def shaped(
    pod: Manifest,
    templates: TemplateSet,
    *,
    namespace: str = "default",
    namespace_labels: Mapping[str, str] | None = None,
) -> Shaped:
    return shape(pod, namespace, namespace_labels, templates)


def applied_to_pod(pod: Manifest, result: Shaped) -> Manifest:
    """A new pod; the one given stays as it was."""
    changed = copy.deepcopy(pod)
    if result.affinity is not None:
        changed["spec"]["affinity"] = copy.deepcopy(result.affinity)
    for key, text in result.annotations.items():
        annotations = changed["metadata"].setdefault("annotations", {})
        if text is None:
            del annotations[key]
        else:
            annotations[key] = text
    return changed


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cart", "labels": {"app": "cart"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]} | spec,
    }


def on(key: str, *values: str, operator: str = "") -> dict[str, Any]:
    """In, or Exists without a value."""
    if not values:
        return {"key": key, "operator": operator or "Exists"}
    return {"key": key, "operator": operator or "In", "values": list(values)}


def term(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def wanting(*terms: dict[str, Any]) -> dict[str, Any]:
    """spec.affinity that demands one of the terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def demanded(result: Shaped) -> list[dict[str, Any]]:
    assert result.affinity is not None
    terms: list[dict[str, Any]] = result.affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def reasons(result: Shaped) -> dict[str, SkipReason]:
    return {one.binding: one.reason for one in result.skipped}


POOL = node_config("pool", required=[term(on("pool", "a"))])
MERGE = {"onConflict": "Merge"}

A, B, C, G = on("pool", "a"), on("pool", "b"), on("zone", "c"), on("gpu")
