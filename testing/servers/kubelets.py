"""What kubelets and providers of virtual nodes do to pods, decided without any I/O; provider_process.py carries it out.

bound --start_seconds--> running --annotation RUN_SECONDS--> succeeded (FAILS: failed)      without it: runs on
  | while it rejects: failed with the reason ProviderFailed, as virtual-kubelet does it (node/pod.go,
  |                   handleProviderError; a pod that may be restarted stays pending with that reason)
  | while it stalls: nothing, until it runs again
terminating -> gone, whatever it did
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

RUN_SECONDS: Final = "test/run-seconds"
"""Annotation: how long the pod's container runs."""

FAILS: Final = "test/fails"
"""Annotation, "true": its container ends with an error."""

_FINISHED: Final = ("Succeeded", "Failed")


class Conduct(Enum):
    """How it treats pods that have not started."""

    RUNS = "runs"
    REJECTS = "rejects"
    STALLS = "stalls"


@dataclass(frozen=True, slots=True)
class Act:
    """On a pod of this namespace, name and UID. status: to be merged; None = it is to be deleted now."""

    namespace: str
    name: str
    uid: str
    status: Mapping[str, Any] | None


class Kubelets:
    """Of all nodes whose names begin with `prefix`. `see` and `due` are told the time, in unix seconds."""

    def __init__(self, prefix: str, *, start_seconds: float = 0.0) -> None:
        self._prefix, self._start_seconds = prefix, start_seconds
        self._conduct = Conduct.RUNS
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._due: list[tuple[float, str]] = []  # a heap: when something may have to be done about a pod
        self._stalled: set[str] = set()
        self._running: dict[str, float] = {}  # since when
        self._done: set[str] = set()  # told to go; or finished, or rejected

    def behave(self, conduct: Conduct, now: float) -> None:
        """From now on, also to pods that have been bound before and have not started."""
        self._conduct = conduct
        for uid in self._stalled:
            heapq.heappush(self._due, (now, uid))
        self._stalled.clear()

    def see(self, kind: str, pod: Mapping[str, Any], now: float) -> None:
        """An event of a watch."""
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._running.pop(uid, None)
            self._stalled.discard(uid)
            self._done.discard(uid)
            return
        if not pod["spec"].get("nodeName", "").startswith(self._prefix):
            return
        is_new, goes = uid not in self._pods, "deletionTimestamp" in metadata
        went = uid in self._pods and "deletionTimestamp" in self._pods[uid]["metadata"]
        self._pods[uid] = pod
        if goes and not went:
            self._done.discard(uid)
            heapq.heappush(self._due, (now, uid))
        elif is_new and pod["status"].get("phase") == "Running":  # of an earlier process
            self._runs(uid, now)
        elif is_new and pod["status"].get("phase") not in _FINISHED:
            heapq.heappush(self._due, (now + self._start_seconds, uid))

    def next_due(self) -> float:
        """When there is something to do; inf = nothing."""
        return self._due[0][0] if self._due else float("inf")

    def due(self, now: float) -> list[Act]:
        """What is to be done by now; each thing is told once."""
        acts = []
        while self._due and self._due[0][0] <= now:
            _, uid = heapq.heappop(self._due)
            if uid in self._pods and uid not in self._done and (act := self._act(uid, now)) is not None:
                acts.append(act)
        return acts

    def _act(self, uid: str, now: float) -> Act | None:
        pod = self._pods[uid]
        metadata, spec = pod["metadata"], pod["spec"]
        status: dict[str, Any] | None
        if "deletionTimestamp" in metadata:
            self._done.add(uid)
            status = None
        elif uid in self._running:
            self._done.add(uid)
            is_failed = metadata.get("annotations", {}).get(FAILS) == "true"
            status = _finished(pod, self._running.pop(uid), now, is_failed=is_failed)
        elif self._conduct is Conduct.STALLS:
            self._stalled.add(uid)
            return None
        elif self._conduct is Conduct.REJECTS:
            phase = "Failed" if spec.get("restartPolicy") == "Never" else "Pending"
            if phase == "Failed":
                self._done.add(uid)
            else:
                self._stalled.add(uid)
            status = {"phase": phase, "reason": "ProviderFailed", "message": "there is no capacity"}
        else:
            self._runs(uid, now)
            state = {"running": {"startedAt": _time(now)}}
            status = {
                "phase": "Running",
                "startTime": _time(now),
                "conditions": _conditions(pod, now, is_ready=True),
                "containerStatuses": _containers(pod, state),
            }
        return Act(metadata["namespace"], metadata["name"], uid, status)

    def _runs(self, uid: str, now: float) -> None:
        self._running[uid] = now
        if seconds := self._pods[uid]["metadata"].get("annotations", {}).get(RUN_SECONDS):
            heapq.heappush(self._due, (now + float(seconds), uid))


def _finished(pod: Mapping[str, Any], began: float, now: float, *, is_failed: bool) -> dict[str, Any]:
    state = {
        "exitCode": int(is_failed),
        "reason": "Error" if is_failed else "Completed",
        "startedAt": _time(began),
        "finishedAt": _time(now),
    }
    return {
        "phase": "Failed" if is_failed else "Succeeded",
        "conditions": _conditions(pod, now, is_ready=False),
        "containerStatuses": _containers(pod, {"terminated": state}),
    }


def _conditions(pod: Mapping[str, Any], now: float, *, is_ready: bool) -> list[dict[str, Any]]:
    """All conditions, as the kubelet leaves them: a merge patch replaces the whole list."""
    ours = ("Ready", "ContainersReady")
    others = [dict(one) for one in pod["status"].get("conditions") or () if one["type"] not in ours]
    said: dict[str, Any] = {"status": "True"} if is_ready else {"status": "False", "reason": "PodCompleted"}
    return [*others, *({"type": kind, "lastTransitionTime": _time(now)} | said for kind in ours)]


def _containers(pod: Mapping[str, Any], state: Mapping[str, Any]) -> list[dict[str, Any]]:
    ready = "running" in state
    return [
        {"name": one["name"], "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": dict(state)}
        for one in pod["spec"]["containers"]
    ]


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
