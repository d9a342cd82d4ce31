"""What preemption asks of the API server: paths and bodies. UIDs go along as preconditions: a later pod of the same
name is left alone.

Source: framework/preemption/executor.go; KEP-3329 for the condition.
"""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from kube.objects.objects import PodInfo


def condition_body(victim: PodInfo, preemptor: PodInfo, now: float) -> bytes:
    """See disruption_body: it makes room for another."""
    why = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod"
    return disruption_body(victim, "PreemptionByScheduler", why, now)


def disruption_body(pod: PodInfo, reason: str, message: str, now: float, *, goes: bool = True) -> bytes:
    """Return a strategic merge patch of the status, by which controllers see that the pod has not failed by itself.

    goes : False = it stays after all
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True" if goes else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return orjson.dumps({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}})


def delete_body(victim: PodInfo, resource_version: str = "") -> bytes:
    """DeleteOptions. The pod's own grace period applies. resource_version: nothing has changed since; '' = whatever."""
    preconditions = {"uid": victim.uid} | ({"resourceVersion": resource_version} if resource_version else {})
    return orjson.dumps({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})
