"""Pods that have a node and wait for Permit plugins to let them go on: approved by name, denied, or out of time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placement.status import SUCCESS, Code, Status
from scheduler.binding.outcome import Reserved


@dataclass(slots=True, eq=False)
class PermitWait:
    """
    pending : plugins that have not approved yet, and how many seconds each waits at most
    settle  : called with the verdict, exactly once
    """

    reserved: Reserved
    pending: dict[str, float]
    settle: Callable[[Status], None]


class WaitingPods:
    """Pods that wait in Permit, by UID. For any thread; the thread that causes a verdict reports it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, PermitWait] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> Sequence[Reserved]:
        """Those that wait, as they came."""
        with self._lock:
            return [one.reserved for one in self._waiting.values()]

    def add(self, reserved: Reserved, seconds: Mapping[str, float], settle: Callable[[Status], None]) -> PermitWait:
        """Wait for these plugins. One of the same UID that waits still is denied."""
        one = PermitWait(reserved, dict(seconds), settle)
        with self._lock:
            before = self._waiting.get(reserved.pod.uid)
            self._waiting[reserved.pod.uid] = one
        if before is not None:
            before.settle(Status(Code.UNSCHEDULABLE, "", "the pod was given a node again"))
        return one

    def allow(self, uid: str, plugin: str) -> bool:
        """Approve the pod for a plugin; once all have, the pod goes on. Returns False if no pod of that UID waits for
        it.
        """
        with self._lock:
            one = self._waiting.get(uid)
            if one is None or one.pending.pop(plugin, None) is None:
                return False
            if one.pending:
                return True
            del self._waiting[uid]
        one.settle(SUCCESS)
        return True

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        """Deny the pod, for a plugin or another part that knows better. Returns False if no pod of that UID waits."""
        with self._lock:
            one = self._waiting.pop(uid, None)
        if one is None:
            return False
        one.settle(Status(Code.UNSCHEDULABLE, plugin, reason))
        return True

    def expire(self, one: PermitWait, plugin: str) -> None:
        """The plugin's time is up; nothing if the pod does not wait for it any more."""
        with self._lock:
            if self._waiting.get(one.reserved.pod.uid) is not one or plugin not in one.pending:
                return
            del self._waiting[one.reserved.pod.uid]
        reason = f"rejected due to timeout after waiting {one.pending[plugin]:g}s at plugin {plugin}"
        one.settle(Status(Code.UNSCHEDULABLE, plugin, reason))

    def clear(self) -> None:
        """Forget them all, without a verdict."""
        with self._lock:
            self._waiting.clear()
