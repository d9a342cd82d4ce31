"""Bind plugin of the advisor: in place of a binding, the pod's node is nominated and our gate removed.

    PATCH status: nominated --> PATCH pod: gate gone, advice noted --> kube-scheduler binds
         |  no                        | not known
         v                            v
    released without advice      looked at later

A pod that is still not bound later is looked at: while kube-scheduler has not tried it the nomination stays; once it
has tried in vain, room is reserved for nothing, and the nomination is withdrawn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from advisor.advice_notes import AdviceNotes
from advisor.advice_requests import advice_note, pending_pod, withdraw_body
from advisor.gated_pods import GatedPods
from kube.binding.binder import BindingRequest
from kube.binding.binding_steps import BindingResult, BindingVerdict, Seen, what_is_seen
from kube.client.api_answer import Answer, is_gone
from kube.client.pod_writes import MERGE, nomination_body, pod_path
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.request_retries import Requests, is_passing, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.gate_removal import remove_gate
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindStatus, bind_status

logger = logging.getLogger(__name__)

_TRIES: Final = 2
_THROTTLED: Final = 429


@dataclass(slots=True)
class AdviceFigures:
    """Since the start: pods with advice, and nominations that were taken back."""

    advised: int = 0
    withdrawn: int = 0


class AdviceBinder:
    """Implements Bind; to be called in the session's loop.

    limit   : notified of 429s and of successes
    notes   : of the advice that is to be written
    gated   : says who writes about a pod
    seconds : for one request
    figures : counted up; the exporter reads them
    released : called in a thread with each pod whose gate was removed; None = no part has to know
    """

    name = "Advice"

    def __init__(
        self,
        session: Requests,
        limit: InFlightLimit,
        *,
        notes: AdviceNotes,
        gated: GatedPods,
        seconds: float,
        figures: AdviceFigures,
        released: Callable[[PodInfo], None] | None = None,
    ) -> None:
        self._session, self._limit, self._seconds = session, limit, seconds
        self._notes, self._gated = notes, gated
        self._notice = FailureNotice(
            logger, "no node was nominated (grant patch on pods/status)", "nodes are nominated again"
        )
        self.figures: Final = figures
        self._released = released

    async def bind(self, pod: PodInfo, node: str) -> BindStatus:
        """SUCCESS = nominated and released, UNSCHEDULABLE = not nominated, ERROR = it is not known whether released."""
        advice = self._notes.take(pod.uid)
        if not self._gated.claim(pod.uid):
            return self._status(BindingVerdict.GONE, "the pod has been released without advice, or is gone")
        is_released = False
        try:
            status = await self._write(pod, node, advice_note(advice, "not known any more", nominated=node))
            is_released = status.is_success
        finally:
            self._gated.released(pod.uid, is_gone=is_released)
        if is_released:
            if self._released is not None:
                await asyncio.to_thread(self._released, pod)
            self._notes.written(advice)
        return status

    async def _write(self, pod: PodInfo, node: str, note: str) -> BindStatus:
        path = pod_path(pod)
        answer = await self._patch(f"{path}/status", nomination_body(pod, node), MERGE)
        if answer.is_success:
            self._notice.succeeded()
            self._gated.nominated(pod.uid, node)
            answer = await remove_gate(lambda body: self._patch(path, body, STRATEGIC_MERGE), pod, note)
            if answer.is_success:
                self._limit.went_well()
                self.figures.advised += 1
                return self._status(BindingVerdict.BOUND)
            if not is_gone(answer):
                return self._status(BindingVerdict.UNKNOWN, f"our gate was not removed: {answer.text}")
        if is_gone(answer):
            return self._status(BindingVerdict.GONE, f"the pod is gone: {answer.text}")
        self._notice.failed(answer.text)
        # After no answer it may be nominated all the same: the pod is looked at again.
        verdict = BindingVerdict.UNKNOWN if is_passing(answer) else BindingVerdict.REFUSED
        return self._status(verdict, f"{node} was not nominated: {answer.text}")

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        """What became of the advice; UNSCHEDULABLE = the pod is not bound there, and the nomination is no more."""
        answer = await self._session.request("GET", pod_path(pod), None, seconds=self._seconds)
        request = BindingRequest(pod.namespace, pod.name, pod.uid, node)
        seen = what_is_seen(request, answer, trouble="it was looked at after its advice")
        if isinstance(seen, BindingResult):
            return bind_status(self.name, seen)
        if seen is Seen.NOTHING:
            return self._status(BindingVerdict.UNKNOWN, answer.text)
        try:
            now = pending_pod(answer.body)
        except msgspec.DecodeError as error:
            return self._status(BindingVerdict.UNKNOWN, f"the pod cannot be read: {error}")
        if now.is_gated:
            self._gated.lost(pod.uid)
            return self._status(BindingVerdict.REFUSED, "our gate is still there")
        if not now.is_tried:
            return self._status(BindingVerdict.UNKNOWN, "kube-scheduler has not tried the pod yet")
        if now.nominated == node:
            withdrawn = await self._session.request(
                "PATCH",
                f"{pod_path(pod)}/status",
                withdraw_body(pod, now.version),
                content_type=MERGE,
                seconds=self._seconds,
            )
            if not withdrawn.is_success and not is_gone(withdrawn):
                return self._status(BindingVerdict.UNKNOWN, f"the nomination was not withdrawn: {withdrawn.text}")
            self.figures.withdrawn += 1
        return self._status(BindingVerdict.REFUSED, "kube-scheduler found no place for the pod")

    async def _patch(self, path: str, body: bytes, content_type: str) -> Answer:
        def is_worth_it(answer: Answer) -> bool:
            if answer.status == _THROTTLED:
                self._limit.was_throttled()
            return is_passing_or_conflict(answer)

        return await request_with_retries(
            self._session,
            "PATCH",
            path,
            lambda: body,
            content_type=content_type,
            seconds=self._seconds,
            tries=_TRIES,
            worth_it=is_worth_it,
        )

    def _status(self, verdict: BindingVerdict, reason: str = "") -> BindStatus:
        return bind_status(self.name, BindingResult(verdict, reason))
