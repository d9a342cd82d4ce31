"""HorizontalPodAutoscalers as the API server shows them."""

from __future__ import annotations

import json
from typing import Any

from autoscaling.replicas.horizontal_autoscalers import ASKS_LABEL, HorizontalAutoscaler, read


def manifest(name: str = "s0", **fields: Any) -> dict[str, Any]:
    """One that asks, of a Deployment of the same name: half a core for each pod, 2 to 20 of them.

    fields: spec, status, labels, annotations, in addition; `metadata` for all else
    """
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 2,
        "maxReplicas": 20,
        "metrics": [metric("500m")],
        **fields.get("spec", {}),
    }
    active = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
    metadata = {
        "namespace": "shop",
        "name": name,
        "uid": name,
        "resourceVersion": "7",
        "labels": {ASKS_LABEL: "true", **fields.get("labels", {})},
        "annotations": fields.get("annotations", {}),
        **fields.get("metadata", {}),
    }
    status = {"currentReplicas": 2, "desiredReplicas": 2, "conditions": [active], **fields.get("status", {})}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": metadata, "spec": spec, "status": status}


def metric(target: str | int, name: str = "cpu") -> dict[str, Any]:
    """Of a resource: a value for each pod, or per cent of its request."""
    of = (
        {"type": "AverageValue", "averageValue": target}
        if isinstance(target, str)
        else {"type": "Utilization", "averageUtilization": target}
    )
    return {"type": "Resource", "resource": {"name": name, "target": of}}


def autoscaler(name: str = "s0", *, asking: frozenset[str] = frozenset(), **fields: Any) -> HorizontalAutoscaler:
    """The same, read. asking: namespaces that ask"""
    found = read(json.dumps(manifest(name, **fields)).encode(), asking)
    assert found is not None
    return found
