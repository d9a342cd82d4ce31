"""A PodInfo -> a Pod object that says the same of what scores look at, for a scorer elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from forecast.service_key import NO_OWNER
from kube.objects.objects import PodInfo, QosClass

_QOS = {
    QosClass.GUARANTEED: "Guaranteed",
    QosClass.BURSTABLE: "Burstable",
    QosClass.BEST_EFFORT: "BestEffort",
}


def pod_json(pod: PodInfo) -> dict[str, Any]:
    """Identity, owner, labels, our annotations, effective requests and limits, QoS class, phase.

    One container stands for all: several containers without a request count as one in scores that give those a default.
    Affinities, volumes and the like are left out: scores do not read them.
    """
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
        "creationTimestamp": datetime.fromtimestamp(pod.created, UTC).isoformat(),
    }
    if pod.owner != NO_OWNER:
        owner = {"kind": pod.owner.kind, "name": pod.owner.name, "uid": pod.owner_uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    resources = {"requests": _amounts(pod.requests), "limits": _amounts(pod.limits)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "all", "resources": resources}],
            "schedulerName": pod.scheduler_name,
            "priority": pod.priority,
        },
        "status": {"phase": pod.phase.value, "qosClass": _QOS[pod.qos]},
    }


def _amounts(amounts: Any) -> dict[str, str]:
    """Quantities with all nine decimals that Kubernetes knows."""
    return {name: f"{amount:.9f}".rstrip("0").rstrip(".") for name, amount in amounts.items()}
