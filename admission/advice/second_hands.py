"""Removes our gate where no advisor does: the second pair of hands, in every replica of the webhook that adds gates.
The watch of unbound pods says which pods our gate alone holds, and for how long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.advice.advisor_lease import AdvisorLease
from kube.client.api_answer import NOT_SENT, is_gone
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Session, begin
from placement.gate_removal import GateRemover, PodWithGates

_PAUSE_SECONDS: Final = 1.0
"""After a vain attempt to release a pod: one that cannot be released must not keep the API server busy."""

logger = logging.getLogger(__name__)
KEEP_UP_SECONDS: Final = 0.25
_CONFLICT: Final = 409
_TAKEOVER_SECONDS: Final = 5.0
_YOUNG_SECONDS: Final = 2.0
_LATER_SECONDS: Final = 2.0
_QUOTA_SECONDS: Final = 10.0
_RENEWED_SECONDS: Final = 2.0

_FAREWELL_SECONDS: Final = 2.5
"""The Lease of advisors that ended in the same moment counts for two seconds."""

_LEAST_FAREWELL_SECONDS: Final = 1.0
"""Until the watch shows what was admitted last."""

_WRITING_SECONDS: Final = 10.0


@dataclass(slots=True)
class _Held:
    """
    since      : when our gate was seen to be the only one
    tries      : how often the pod was to be released
    is_claimed : its gate is being removed
    again_at   : before that it is left alone
    """

    pod: PodWithGates
    since: float
    tries: int = 0
    is_claimed: bool = False
    again_at: float = float("-inf")


class HoldingTimes:
    """Implements ResourceSink. For any thread.

    clock : seconds, monotonic, for pods that are seen to come
    wall  : unix seconds, for those that came unseen, before a list: when they were created is all that is known of
            them. Where the clocks of the machines differ they are released earlier or later
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    # Implements ResourceSink

    def replace(self, objects: Sequence[PodWithGates]) -> None:
        """These are all pods without a node."""
        with self._lock:
            before, self._held = self._held, {}
            now, wall = self._clock(), self._wall()
            for pod in objects:
                if pod.waits_for_us_alone:
                    known = before.get(pod.uid)
                    self._held[pod.uid] = known or _Held(pod, now - max(0.0, wall - pod.created))
                    self._held[pod.uid].pod = pod

    def put(self, obj: PodWithGates) -> None:
        """A pod is new or has changed."""
        with self._lock:
            if not obj.waits_for_us_alone:
                self._held.pop(obj.uid, None)
            elif (known := self._held.get(obj.uid)) is not None:
                known.pod = obj
            else:
                self._held[obj.uid] = _Held(obj, self._clock())

    def delete(self, obj: PodWithGates) -> None:
        """A pod is bound, or gone."""
        with self._lock:
            self._held.pop(obj.uid, None)

    # What is asked

    def take(
        self, seconds: float, *, is_left: Callable[[PodWithGates], bool] = lambda pod: False
    ) -> list[PodWithGates]:
        """Return the pods that have been held for so long, those that have waited longest first. The caller removes
        their gates, and says `tried` in any case.

        After two vain attempts a pod comes without its version: one that somebody changes all the time is released,
        too. is_left : whether a pod is not to be taken
        """
        with self._lock:
            now = self._clock()
            due = [
                one
                for one in self._held.values()
                if now - one.since >= seconds and not one.is_claimed and now >= one.again_at
            ]
            due = sorted((one for one in due if not is_left(one.pod)), key=lambda one: one.since)
            for one in due:
                one.tries, one.is_claimed = one.tries + 1, True
            return [one.pod if one.tries <= 2 else replace(one.pod, version="") for one in due]

    def tried(self, uid: str) -> None:
        """The attempt at a pod that was taken has ended. One that is still held is left alone for a second."""
        with self._lock:
            if (one := self._held.get(uid)) is not None:
                one.is_claimed, one.again_at = False, self._clock() + _PAUSE_SECONDS

    def has(self, uid: str) -> bool:
        """Return whether the pod is still held, as far as is known."""
        return uid in self._held

    def longest(self, *, is_left: Callable[[PodWithGates], bool] = lambda pod: False) -> float:
        """Return the seconds for which the pod that has waited longest has been held; 0 = none is."""
        with self._lock:
            now = self._clock()
            return max((now - one.since for one in self._held.values() if not is_left(one.pod)), default=0.0)

    def __len__(self) -> int:
        return len(self._held)


def longest_hold(gate_timeout: float, silent_for: float) -> float:
    """Return the seconds for which a pod may be held before it is released from here.

    gate_timeout : of the advisors
    silent_for   : seconds since one was last alive
    """
    if silent_for >= _TAKEOVER_SECONDS:
        return min(gate_timeout, _YOUNG_SECONDS)
    return gate_timeout + _LATER_SECONDS


class SecondHands(Collector):
    """`keep_up` is to be called every KEEP_UP_SECONDS by one thread.

    held         : follows the unbound pods
    is_following : whether these, and the quotas, have been read, and are still followed
    may_patch    : whether this process may patch pods
    gate_timeout : of the advisors, seconds
    has_quota    : whether pods of a namespace may be waiting for the quota of their tenant. They are left to the
                   advisors, which know the quotas, until none has been alive for ten seconds
    """

    def __init__(
        self,
        session: Session,
        held: HoldingTimes,
        lease: AdvisorLease,
        *,
        gate_timeout: float,
        is_following: Callable[[], bool],
        may_patch: Callable[[], bool],
        has_quota: Callable[[str], bool] = lambda namespace: False,
    ) -> None:
        self._session, self._held, self._lease = session, held, lease
        self._gate_timeout, self._is_following, self._may_patch = gate_timeout, is_following, may_patch
        self._has_quota = has_quota
        self._remover = GateRemover(session)
        self._notice = FailureNotice(logger, "our gate was not removed from a pod that no advisor released")
        self._released = 0
        self._is_over = False  # the session is
        self._under_way: set[Future[None]] = set()

    def can_release(self) -> bool:
        """Return whether a pod that is held from now on would be released from here."""
        return self._is_following() and self._may_patch() and not self._is_over

    def keep_up(self) -> None:
        """Release what has been held too long."""
        silent_for = self._lease.silent_for()
        because = "no advisor is alive" if silent_for >= _TAKEOVER_SECONDS else "no advice in time from any advisor"
        self._release(longest_hold(self._gate_timeout, silent_for), because)

    def end(self) -> None:
        """Release every pod that is held, of tenants, too, if no advisor is alive: no other replica may be
        left. Takes seconds."""
        began = time.monotonic()
        while (since := time.monotonic() - began) < _FAREWELL_SECONDS:
            time.sleep(KEEP_UP_SECONDS)
            if not self._lease.is_renewed(_RENEWED_SECONDS):
                self._release(0.0, "no advisor is alive", is_left=lambda pod: False)
            if since >= _LEAST_FAREWELL_SECONDS and not len(self._held):
                break
        wait([*self._under_way], _WRITING_SECONDS)

    def _release(self, seconds: float, because: str, *, is_left: Callable[[PodWithGates], bool] | None = None) -> None:
        for pod in self._held.take(seconds, is_left=is_left or self._is_left):
            under_way = begin(self._session, self._write(pod, because))
            if under_way is None:
                self._is_over = True
                self._held.tried(pod.uid)
                continue
            self._under_way.add(under_way)
            under_way.add_done_callback(partial(self._ended, pod.uid))

    def _ended(self, uid: str, done: Future[None]) -> None:
        self._under_way.discard(done)
        self._held.tried(uid)
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("a pod was not released", exc_info=error)

    def _is_left(self, pod: PodWithGates) -> bool:
        return self._lease.silent_for() < _QUOTA_SECONDS and self._has_quota(pod.namespace)

    async def _write(self, pod: PodWithGates, because: str) -> None:
        note = msgspec.json.encode({"node": None, "because": because}).decode()
        answer = await self._remover.remove(
            pod, note, version=pod.version, still_wanted=lambda: self._held.has(pod.uid)
        )
        if answer.is_success:
            self._notice.succeeded()
            self._released += 1
            self._held.delete(pod)
        elif is_gone(answer):
            self._held.delete(pod)
        elif answer.status not in (_CONFLICT, NOT_SENT):
            self._notice.failed(answer.text, pod=f"{pod.namespace}/{pod.name}")

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "forecast_webhook_released_pods",
            "Pods whose gate this replica of the webhook removed, because no advisor did.",
            self._released,
        )
        yield GaugeMetricFamily(
            "forecast_gated_longest_seconds",
            "Time for which our gate has held a pod longest that waits for no quota.",
            self._held.longest(is_left=self._is_left),
        )
