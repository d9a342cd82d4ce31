"""Removes our gate without advice: from pods that it has held too long, and from those for which there is no node.

Every replica does so, whether it leads or not, and however often: the patch says the same each time.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import StrEnum
from functools import partial
from typing import Final

from advisor.advice_requests import advice_note
from advisor.gated_pods import GatedPods
from advisor.quota_gate import QuotaGate
from kube.client.api_answer import is_gone
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession, SessionOver
from placement.gate_removal import GateRemover

logger = logging.getLogger(__name__)

_LEADER_SECONDS: Final = 1.0


class Outcome(StrEnum):
    """Why a pod is released without advice."""

    NO_NODE = "no_node"
    OVERDUE = "overdue"
    NO_FORECAST = "no_forecast"


class Releases:
    """For any thread. `keep_up` is to be called several times a second.

    session      : writes whether or not this replica leads
    seconds      : after which a pod is overdue
    has_forecast : without one no pod waits for advice
    leads        : one that does not gives the leader a second more, whose release says what was advised
    quotas       : keep pods held whatever else is so; None = there are no tenants
    """

    def __init__(
        self,
        session: ApiSession,
        gated: GatedPods,
        *,
        seconds: float,
        has_forecast: Callable[[], bool],
        leads: Callable[[], bool],
        quotas: QuotaGate | None = None,
    ) -> None:
        self._session, self._gated, self._overdue_seconds = session, gated, seconds
        self._has_forecast, self._leads, self._quotas = has_forecast, leads, quotas
        self._remover = GateRemover(session)
        self._notice = FailureNotice(logger, "our gate was not removed (grant patch on pods)")
        self.released: Final[Counter[Outcome]] = Counter()

    def keep_up(self) -> None:
        """Release what is overdue."""
        if not self._has_forecast():
            self._release(self._gated.held_for(0.0), Outcome.NO_FORECAST, "there is no usable forecast")
            return
        seconds = self._overdue_seconds
        overdue = self._gated.held_for(seconds if self._leads() else seconds + _LEADER_SECONDS)
        self._release(overdue, Outcome.OVERDUE, f"no advice within {seconds:g} s")

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
            ended = partial(self._ended, pod.uid)
            try:
                self._session.submit(self._write(pod, outcome, because)).add_done_callback(ended)
            except SessionOver:
                self._ended(pod.uid, None)

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
        if done is not None and not done.cancelled():
            if (error := done.exception()) is not None:
                logger.error("a pod was not released", extra={"uid": uid}, exc_info=error)
            else:
                is_released = done.result()
        if self._quotas is not None and not is_released:
            self._quotas.withdraw(uid)
        self._gated.released(uid, is_gone=is_released)
