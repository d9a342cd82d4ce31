"""PreEnqueue: jobs that say how long they may wait are held until their planned start.

    pod with slack --gate--> no plan yet: waits a few seconds --plan--> waits until its start --> let go
                       +---> latest start less a margin has come, no forecast, nothing said: let go at once

What is let go stays so while it waits: a pod that no node takes is not held again. No pod is held past its
latest start less a margin: the queue itself wakes it, even if nobody plans any more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint
from extender.framework.status import SUCCESS, Code, Status
from extender.job.valley.options import ValleyOptions
from extender.job.valley.plan import PlannedStart
from scorer.cluster.objects import PodInfo

__all__ = ["HeldPod", "ValleyGate"]

_NAME: Final = "Valley"


@dataclass(frozen=True, slots=True)
class HeldPod:
    """since: unix seconds, when it was first held."""

    pod: PodInfo
    since: float


class ValleyGate:
    """The queue asks under the lock of the tables; the planner looks and writes from a thread of its own: every access
    is one operation of a dictionary."""

    name = _NAME
    woken_by = frozenset({EventKind.FORECAST_CHANGED, EventKind.TIMEOUT})

    def __init__(
        self,
        options: ValleyOptions,
        due_of: Callable[[PodInfo], float],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        due_of : unix seconds, the latest moment at which a pod may start; inf = it does not say. Quick, no exceptions
        clock  : unix seconds
        """
        self._options, self.due_of, self._clock = options, due_of, clock
        self._held: dict[str, HeldPod] = {}
        self._plan: Mapping[str, PlannedStart] = {}
        self._has_forecast = True  # until the planner says otherwise
        self.has_new = False

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """See PreEnqueue."""
        if not self._options.shift or not self._has_forecast or pod.nominated_node:
            return SUCCESS
        due, now = self.due_of(pod), self._clock()
        left = due - self._options.margin - now
        if not 0 < left < math.inf:
            return SUCCESS
        planned, held = self._plan.get(pod.uid), self._held.get(pod.uid)
        if held is None:
            held = self._held[pod.uid] = HeldPod(pod, now)
            self.has_new = True
        if planned is None:
            wait = min(held.since + self._options.first_wait - now, left)
            return Status(Code.WAIT, _NAME, "it waits to be planned", wait) if wait > 0 else SUCCESS
        wait = min(planned.start - now, left)
        return Status(Code.WAIT, _NAME, planned.why, wait) if wait > 0 else SUCCESS

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """See EnqueueExtensions."""
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP

    # The planner's side

    def held(self) -> dict[str, HeldPod]:
        """Pods that were held, by UID; a copy. Some may have been let go since."""
        return self._held.copy()

    def forget(self, uid: str) -> None:
        """It does not wait any more."""
        self._held.pop(uid, None)

    @property
    def plan(self) -> Mapping[str, PlannedStart]:
        """The latest one, never changed."""
        return self._plan

    def use(self, plan: Mapping[str, PlannedStart], *, has_forecast: bool) -> None:
        """Go by this plan from now on. Without a forecast nobody is held."""
        self._plan, self._has_forecast = plan, has_forecast
