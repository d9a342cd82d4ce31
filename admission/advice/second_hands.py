"""Removes our gate where no advisor does: the second pair of hands, in every replica of the webhook that adds gates.

    an advisor is alive   a pod that is held for longer than the advisors may hold it, and a moment more
    none for a while      every pod, after the time in which the next replica would have taken over
    this process ends     every pod, if no advisor is alive

So no pod stays held, whatever ends or hangs. A process that may not remove gates, or does not see which pods they hold,
adds none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import Final

import orjson
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.advice.advisor_lease import AdvisorLease
from admission.advice.holding_times import HoldingTimes
from kube.client.api_answer import NOT_SENT, is_gone
from kube.failure_notice import FailureNotice
from kube.session.api_session import SessionOver
from kube.session.request_retries import Session
from placement.gate_removal import GateRemover
from placement.held_pods import HeldPod

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

    def _release(self, seconds: float, because: str, *, is_left: Callable[[HeldPod], bool] | None = None) -> None:
        for pod in self._held.take(seconds, is_left=is_left or self._is_left):
            try:
                under_way = self._session.submit(self._write(pod, because))
            except SessionOver:
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

    def _is_left(self, pod: HeldPod) -> bool:
        return self._lease.silent_for() < _QUOTA_SECONDS and self._has_quota(pod.namespace)

    async def _write(self, pod: HeldPod, because: str) -> None:
        note = orjson.dumps({"node": None, "because": because}).decode()
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
