"""The condition PodScheduled=False: why a pod waits, in `kubectl get pod -o yaml` and for autoscalers; and the last
report about each pod, so that the same is not reported again.

A patch as kube-scheduler's (handleSchedulingFailure in pkg/scheduler/schedule_one.go): a strategic merge, so that
conditions of others stay. The UID in it is a precondition: a later pod of the same name is left alone.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

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
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}})


def status_path(pod: WaitingCondition) -> str:
    """Of the pod's status. Names of the API server need no escaping."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"


class LastReported:
    """By UID, for the `most` pods that were reported last. The caller has the lock and the clock.

    again_after : seconds after which the same may be reported again
    """

    def __init__(self, most: int, *, again_after: float = float("inf")) -> None:
        self._most, self._again_after = most, again_after
        self._told: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, uid: str) -> bool:
        return uid in self._told

    def is_news(self, uid: str, text: str, now: float) -> bool:
        """Return whether the last report was another one, or is older than `again_after`."""
        last = self._told.get(uid)
        # The hash stands for the text: messages are long, and what is lost by a collision is one of them.
        return last is None or last[0] != hash(text) or not 0.0 <= now - last[1] < self._again_after

    def note(self, uid: str, text: str, now: float) -> None:
        """Remember that the text has been reported."""
        self._told[uid] = (hash(text), now)
        self._told.move_to_end(uid)
        if len(self._told) > self._most:
            self._told.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Drop the last report of a pod that is bound or gone."""
        self._told.pop(uid, None)
