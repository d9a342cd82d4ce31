"""The Bind plugins: DefaultBinder binds through the API server, asynchronously; DryRun takes every pod as bound and
sends nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from kube.binding.binding_steps import (
    BindingRequest,
    BindingResult,
    BindingVerdict,
    Pause,
    Steps,
    binding_steps,
    looking_steps,
)
from kube.client.api_answer import not_sent
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.status import SUCCESS, Status
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindStatus, bind_status

_THROTTLED = 429

logger = logging.getLogger(__name__)


class DefaultBinder:
    """Implements Bind; to be called in the session's loop.

    limit           : notified of 429s and of successes
    annotations_of  : annotations of a pod once it is bound to a node, such as its devices; called in the loop, without
                      a lock, and again for every attempt
    change_of       : returns a function that says why a node has changed since, '' = it has not; after a change no
                      further request is sent
    seconds         : for one binding, retries and looks at the pod included
    attempt_seconds : for one request, so that an unanswered one can be looked after
    """

    name = "DefaultBinder"

    def __init__(
        self,
        session: ApiSession,
        limit: InFlightLimit | None = None,
        *,
        annotations_of: Callable[[PodInfo, str], Mapping[str, str]] | None = None,
        change_of: Callable[[str], Callable[[], str]] = lambda node: lambda: "",
        seconds: float = 10.0,
        attempt_seconds: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._limit, self._clock = session, limit, clock
        self._annotations_of, self._change_of = annotations_of, change_of
        self._seconds, self._attempt_seconds = seconds, attempt_seconds

    async def bind(self, pod: PodInfo, node: str) -> BindStatus:
        """SUCCESS = bound, UNSCHEDULABLE = not bound, ERROR = not known."""
        result = await self._carry_out(self._steps(binding_steps, pod, node), self._change_of(node))
        if self._limit is not None and result.verdict is BindingVerdict.BOUND:
            self._limit.went_well()
        return bind_status(self.name, result)

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        """What became of a binding that is not known; UNSCHEDULABLE = it is not bound there."""
        return bind_status(self.name, await self._carry_out(self._steps(looking_steps, pod, node)))

    def _steps(self, steps: Callable[..., Steps], pod: PodInfo, node: str) -> Steps:
        return steps(
            self._request(pod, node), seconds=self._seconds, attempt_seconds=self._attempt_seconds, clock=self._clock
        )

    def _request(self, pod: PodInfo, node: str) -> BindingRequest:
        request = request_of(pod, node)
        if self._annotations_of is None:
            return request
        return replace(request, annotations=self._annotations_of(pod, node))

    async def _carry_out(self, steps: Steps, change: Callable[[], str] = lambda: "") -> BindingResult:
        request = self._session.request
        step = next(steps)
        try:
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = steps.send(step.because)
                    continue
                if step.method == "POST" and (why := change()):
                    step = steps.send(not_sent(why))
                    continue
                answer = await request(step.method, step.path, step.body or None, seconds=step.seconds)
                if answer.status == _THROTTLED and self._limit is not None:
                    self._limit.was_throttled()
                step = steps.send(answer)
        except StopIteration as end:
            result: BindingResult = end.value
            return result


def request_of(pod: PodInfo, node: str) -> BindingRequest:
    """That very pod to that node."""
    return BindingRequest(pod.namespace, pod.name, pod.uid, node)


class DryRun:
    """Implements Bind."""

    name = "DryRun"

    async def bind(self, pod: PodInfo, node: str) -> Status:
        logger.info("would be bound", extra={"pod": f"{pod.namespace}/{pod.name}", "node": node})
        return SUCCESS
