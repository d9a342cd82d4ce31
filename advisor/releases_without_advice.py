"""Removes our gate without advice: from pods that it has held too long, and from those for which there is none. How
long a pod may wait is decided here, too.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from enum import Enum, StrEnum
from functools import partial
from typing import Final

from advisor.advice_requests import advice_note
from advisor.pods_waiting_for_advice import GatedPods
from advisor.quota_gate import QuotaGate
from kube.client.api_answer import is_gone
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from kube.session.session_calls import begin
from placement.gate_removal import GateRemover
from scheduler.pod_reports import LoopReports

# How long a pod may wait for its advice, and which pods need not wait for one that cannot come in time. Pure.
#
# nothing was decided for 5 s      pods that were held for 5 s are released: they must not wait for what is wrong
# advice is being written          pods wait up to the ceiling; where more are held than can be advised on until then,
#                                  those that need advice least are released at once

STALLED_SECONDS: Final = 5.0

_SPARE: Final = 2.0
"""A rate that was low for a moment must not cost pods their advice."""

logger = logging.getLogger(__name__)
_LEADER_SECONDS: Final = 1.0

_FAREWELL_SECONDS: Final = 3.5
"""Two seconds more than a webhook takes to see that the Lease was given back: 0.5 s between two looks, 1 s for one."""

_LOOK_SECONDS: Final = 0.25
_WRITING_SECONDS: Final = 10.0


class Patience:
    """Fed with the number of pods advised so far, several times a second.

    ceiling : seconds
    """

    def __init__(self, ceiling: float) -> None:
        self._ceiling = ceiling
        self._seen: deque[tuple[float, int]] = deque()
        self._moved_at, self._n_decided = float("-inf"), 0

    def see(self, now: float, n_advised: int, n_held: int, n_decided: int = 0) -> None:
        """Note what was done until now. now: seconds, monotonic; n_held: pods that wait; n_decided: about so many."""
        decided, self._n_decided = n_decided > self._n_decided, n_decided
        if not n_held or not self._seen or now - self._seen[-1][0] >= STALLED_SECONDS:
            # A pause without pods, or of this whole process, says nothing about how fast deciding is.
            self._seen.clear()
            self._moved_at = now
        elif decided or n_advised > self._seen[-1][1]:
            self._moved_at = now
        self._seen.append((now, n_advised))
        while self._seen[0][0] < now - self._ceiling / 2:
            self._seen.popleft()

    @property
    def is_stalled(self) -> bool:
        """Return whether pods wait and nothing was decided for a while."""
        return bool(self._seen) and self._seen[-1][0] - self._moved_at >= STALLED_SECONDS

    @property
    def seconds(self) -> float:
        """Return for how long a pod may be held."""
        return min(self._ceiling, STALLED_SECONDS) if self.is_stalled else self._ceiling

    @property
    def room(self) -> int | None:
        """Return how many pods may wait; None = as many as come: it is not known yet how fast deciding is.

        The first seconds of a burst say little: tables are read, and pods are held back for each other.
        """
        if len(self._seen) < 2:
            return None
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        if now - began < self._ceiling / 4 or last == first:
            return None
        return int(_SPARE * self._ceiling * (last - first) / (now - began))


def least_in_need(pods: Sequence[PodInfo], n: int) -> Sequence[PodInfo]:
    """Return the n pods for which advice matters least: of low priority, and of those the ones that request little."""
    return sorted(pods, key=lambda pod: (pod.priority, pod.nonzero_requests))[:n]


class Outcome(StrEnum):
    """Why a pod is released without advice."""

    NO_NODE = "no_node"
    OVERDUE = "overdue"
    NO_FORECAST = "no_forecast"
    TOO_MANY = "too_many"
    ENDING = "ending"


class ForecastUse(Enum):
    """Whether a model says where load will be."""

    USABLE = "usable"
    AWAITED = "awaited"  # this process has just begun
    MISSING = "missing"


class Releases:
    """For any thread. `keep_up` is to be called several times a second.

    session   : writes whether or not this replica leads
    seconds   : after which a pod is overdue
    forecast  : where it is missing no pod waits for the advice of a leader
    leads     : one that does not gives the leader a second more, whose release says what was advised
    n_advised : pods whose advice this replica has written so far; n_decided: about which it has decided
    quotas    : keep pods held whatever else is so; None = there are no tenants
    clock     : seconds, monotonic
    """

    def __init__(
        self,
        session: ApiSession,
        gated: GatedPods,
        *,
        seconds: float,
        forecast: Callable[[], ForecastUse],
        leads: Callable[[], bool],
        n_advised: Callable[[], int],
        n_decided: Callable[[], int] = lambda: 0,
        quotas: QuotaGate | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._gated, self._ceiling, self._clock = session, gated, seconds, clock
        self._forecast, self._leads, self._quotas = forecast, leads, quotas
        self._n_advised, self._n_decided = n_advised, n_decided
        self._patience = Patience(seconds)
        self._remover = GateRemover(session)
        self._notice = FailureNotice(logger, "our gate was not removed (grant patch on pods)")
        self._under_way: set[Future[bool]] = set()
        self.released: Final[Counter[Outcome]] = Counter()

    def keep_up(self) -> None:
        """Release what is overdue, and what cannot get advice in time."""
        if not self._leads():
            overdue = self._gated.held_for(self._ceiling + _LEADER_SECONDS)
            self._release(overdue, Outcome.OVERDUE, f"no advice within {self._ceiling:g} s")
            return
        quotas = self._quotas
        n_waiting = len(self._gated) if quotas is None else self._gated.number(lambda uid: not quotas.keeps(uid))
        self._patience.see(self._clock(), self._n_advised(), n_waiting, self._n_decided())
        seconds = self._patience.seconds
        self._release(self._gated.held_for(seconds), Outcome.OVERDUE, f"no advice within {seconds:g} s")
        if self._forecast() is ForecastUse.MISSING:
            self._release(self._gated.held_for(0.0), Outcome.NO_FORECAST, "there is no usable forecast")
            return
        room = self._patience.room
        if room is not None and n_waiting > room:
            spare = least_in_need(self._gated.held_for(0.0), n_waiting - room)
            self._release(spare, Outcome.TOO_MANY, "more pods wait than can be advised on in time")

    def end(self, is_led: Callable[[], bool]) -> None:
        """Release every pod while the webhook may still hold new ones, unless another replica leads. Takes seconds.

        is_led : whether another replica has taken the Lease
        """
        until = self._clock() + _FAREWELL_SECONDS
        if self._quotas is not None:
            self._quotas.acts_alone()
        while self._clock() < until and not is_led():
            self._release(self._gated.held_for(0.0), Outcome.ENDING, "the advisor is shutting down")
            time.sleep(_LOOK_SECONDS)
        wait([*self._under_way], _WRITING_SECONDS)

    def without_advice(self, pod: PodInfo, because: str) -> None:
        """Release a pod for which there is no advice, if our gate still holds it."""
        self._release([pod], Outcome.NO_NODE, because)

    def _release(self, pods: Sequence[PodInfo], outcome: Outcome, because: str) -> None:
        """Begin to release these, but for those whose gate is being removed."""
        for pod in pods:
            if not self._gated.claim(pod.uid):
                continue
            if self._quotas is not None and not self._quotas.admit(pod):
                self._gated.released(pod.uid, is_gone=False)
                continue
            under_way = begin(self._session, self._write(pod, outcome, because))
            if under_way is None:
                self._ended(pod.uid, None)
            else:
                self._under_way.add(under_way)
                under_way.add_done_callback(partial(self._ended, pod.uid))

    async def _write(self, pod: PodInfo, outcome: Outcome, because: str) -> bool:
        answer = await self._remover.remove(pod, advice_note(None, because, nominated=pod.nominated_node))
        if answer.is_success:
            self._notice.succeeded()
            self.released[outcome] += 1
        elif not is_gone(answer):
            self._notice.failed(answer.text)
        return answer.is_success

    def _ended(self, uid: str, done: Future[bool] | None) -> None:
        is_released = False
        if done is not None:
            self._under_way.discard(done)
        if done is not None and not done.cancelled():
            if (error := done.exception()) is not None:
                logger.error("a pod was not released", extra={"uid": uid}, exc_info=error)
            else:
                is_released = done.result(0)
        if self._quotas is not None and not is_released:
            self._quotas.withdraw(uid)
        self._gated.released(uid, is_gone=is_released, pause=not is_released)


class AdviceReports(LoopReports):
    """Conditions and events are kube-scheduler's. An advice that is written does not mean that the pod is bound
    (followed_advice.py)."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """No node is to be had by what we know: kube-scheduler decides, which may make room."""
        self._releases.without_advice(pod, message)
