"""PreEnqueue: jobs that say how long they may wait are held until their planned start.

    pod with slack --gate--> no plan yet: waits a few seconds --plan--> waits until its start --> released
                       +---> latest start less a margin has come, no forecast, nothing said: released at once

A released pod stays so until it is gone: if no node takes it, or its binding fails, it is not held again. No pod is
held past its latest start less a margin: the queue itself wakes it, even if the planner has stopped.

Members of a PodGroup are held and released as one: after the first of them none is held, which the queue sees to for
those that wait here, and the gate for those that come later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.pod_groups.group_of_pod import group_of
from placement.status import SUCCESS, Code, Status
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.start_plan import PlannedStart

_NAME: Final = "Valley"
_MOST_LET_GO: Final = 65_536


def held_as(pod: PodInfo) -> str:
    """Under which key it is planned: that of its PodGroup, if it is in one, or its own."""
    group = group_of(pod)
    return pod.uid if group is None else f"group:{group}"


@dataclass(slots=True)
class HeldJobPod:
    """since, until: unix seconds, when it was first held, and when the gate let it go; inf = it has not, though the
    queue may have, at the planned start."""

    pod: PodInfo
    since: float
    until: float = math.inf


class ValleyGate:
    """The queue asks under the lock of the tables, and so does the planner when it reports that a pod was released or
    is gone. Otherwise the planner reads and writes from a thread of its own: every such access is one operation of a
    dictionary.
    """

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
        self._held: dict[str, HeldJobPod] = {}
        self._let_go: dict[str, str] = {}  # by UID, as what it was held
        self._n_let_go: dict[str, int] = {}  # of a PodGroup
        self._plan: Mapping[str, PlannedStart] = {}
        self._has_forecast = True  # until the planner says otherwise
        self.has_new = False

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not self._options.enabled:
            return SUCCESS
        key = held_as(pod)
        if self.is_let_go(pod):
            self.let_go(pod)
            return SUCCESS
        due, now = self.due_of(pod), self._clock()
        left = due - self._options.margin - now
        if not 0 < left < math.inf or not self._has_forecast or pod.nominated_node:
            if due < math.inf or key != pod.uid:  # else it will not be held later either
                self.let_go(pod)
            return SUCCESS
        planned, held = self._plan.get(key), self._held.get(pod.uid)
        if held is None:
            held = self._held[pod.uid] = HeldJobPod(pod, now)
            self.has_new = True
        if planned is None:
            wait, why = min(held.since + self._options.first_wait - now, left), "it waits to be planned"
        else:
            wait, why = min(planned.start - now, left), planned.why
        if wait > 0:
            return Status(Code.WAIT, _NAME, why, wait)
        if planned is not None:  # else its first plan may come in time
            self.let_go(pod)
        return SUCCESS

    def is_let_go(self, pod: PodInfo) -> bool:
        """Whether it, or its PodGroup, is not held any more."""
        return pod.uid in self._let_go or held_as(pod) in self._n_let_go

    def let_go(self, pod: PodInfo) -> None:
        """It is not held again, nor its PodGroup. Under the lock of the tables."""
        key = held_as(pod)
        if self._let_go.get(pod.uid) == key:
            return
        held = self._held.get(pod.uid)
        if held is not None:
            held.until = self._clock()
        self.gone(pod.uid)
        if len(self._let_go) >= _MOST_LET_GO:
            self.gone(next(iter(self._let_go)))
        self._let_go[pod.uid] = key
        if key != pod.uid:
            self._n_let_go[key] = self._n_let_go.get(key, 0) + 1

    def gone(self, uid: str) -> None:
        """There is no such pod any more, or it has finished. Under the lock of the tables."""
        key = self._let_go.pop(uid, uid)
        if key != uid:
            self._n_let_go[key] -= 1
            if not self._n_let_go[key]:
                del self._n_let_go[key]

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP

    # The planner's side

    def held(self) -> dict[str, HeldJobPod]:
        """Return a copy of the held pods by UID. Some may have been released since."""
        return self._held.copy()

    def take_held(self) -> dict[str, HeldJobPod]:
        """Return the same for a plan: none of them is new any more."""
        self.has_new = False
        return self.held()

    def forget(self, uid: str) -> None:
        """It does not wait any more."""
        self._held.pop(uid, None)

    def all_let_go(self) -> list[str]:
        """UIDs of pods that are not to be held any more."""
        return list(self._let_go)

    @property
    def plan(self) -> Mapping[str, PlannedStart]:
        """The latest one, never changed, as `held_as` names who is planned."""
        return self._plan

    def use(self, plan: Mapping[str, PlannedStart], *, has_forecast: bool) -> None:
        """Go by this plan from now on. Without a forecast no pod is held."""
        self._plan, self._has_forecast = plan, has_forecast
