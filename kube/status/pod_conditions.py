"""The condition PodScheduled=False: why a pod waits, in `kubectl get pod -o yaml` and for autoscalers.

A patch as kube-scheduler's (handleSchedulingFailure in pkg/scheduler/schedule_one.go): a strategic merge, so that
conditions of others stay. The UID in it is a precondition: a later pod of the same name is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from kube.objects.objects import PodInfo

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"

_LONGEST_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class WaitingCondition:
    """A pod that waits. reason: Unschedulable, SchedulerError or WaitingForValley; message: for people."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str

    @property
    def text(self) -> str:
        """Return everything that the condition says."""
        return f"{self.reason}: {self.message}"

    @classmethod
    def of(cls, pod: PodInfo, reason: str, message: str) -> WaitingCondition:
        """Keep what is to be written about a pod, not the pod itself: there may be thousands."""
        clipped = message.encode(errors="replace")[:_LONGEST_MESSAGE].decode(errors="ignore")
        return cls(pod.namespace, pod.name, pod.uid, reason, clipped)


def condition_patch(pod: WaitingCondition, *, now: float, is_first: bool) -> bytes:
    """is_first: no condition of the pod was written before; otherwise the time since when it waits stays."""
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": pod.reason,
        "message": pod.message,
    }
    if is_first:
        condition["lastTransitionTime"] = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return orjson.dumps({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}})


def status_path(pod: WaitingCondition) -> str:
    """Of the pod's status. Names of the API server need no escaping."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
