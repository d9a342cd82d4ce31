"""Carries a nomination out: the pod is nominated, its victims are told to go.

    in memory    pods of lower priority lose their nomination to the node; the pod is nominated
    API server   status.nominatedNodeName --pod is gone--> nothing is evicted
                     |
                 each victim: condition DisruptionTarget, delete, event Preempted
                     |                 |                        |
                   done              refused: the nomination    no answer, 409, 429, 5xx: asked again while the
                                     ends, the pod tries again  nomination lasts

A nomination that ended because one victim's answer was lost would have the pod evict others in addition to those that
go already.

Needs patch on pods/status and delete on pods. A replica that may not write evicts nobody.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import orjson

from extender.api_answer import Answer, is_gone
from extender.framework.binding.trying import Requests, is_passing_or_conflict, request_again
from extender.framework.plugins import Nomination
from extender.framework.preemption.nominated import NominatedPods
from extender.framework.preemption.requests import (
    MERGE,
    condition_body,
    delete_body,
    nomination_body,
    pod_path,
)
from extender.framework.reporting.conditions import STRATEGIC_MERGE
from scorer.cluster.objects import PodInfo

__all__ = ["PreemptionExecutor", "Session", "Tell"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 16
_AGAIN_SECONDS: Final = 1.0
"""Between two rounds of tries."""

Tell = Callable[[PodInfo, str, str], None]
"""Posts an event soon, and never waits: the pod it is about, its reason, its note."""


class Session(Requests, Protocol):
    """extender.framework.binding.session.ApiSession."""

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Run a coroutine in its loop."""


class _Failed(Exception):
    """Something that was asked for was not done."""


class PreemptionExecutor:
    """`carry_out` and `withdraw` are called under the lock of the tables and send nothing themselves."""

    def __init__(
        self,
        session: Session,
        nominated: NominatedPods,
        *,
        locked: Callable[[], AbstractContextManager[object]],
        tell: Tell = lambda pod, reason, note: None,
        failed: Callable[[PodInfo], None] = lambda pod: None,
        evicted: Callable[[], object] = lambda: None,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        locked    : takes the lock of the tables
        failed    : told of a pod whose preemption failed, without the lock: it is to be tried again
        evicted   : told of each victim whose eviction the API server took; quick
        may_write : the lease says so
        clock     : unix seconds
        """
        self._session, self._nominated, self._locked = session, nominated, locked
        self._tell, self._failed, self._count = tell, failed, evicted
        self._may_write, self._clock = may_write, clock
        self._running: set[str] = set()
        self.failures = 0

    def is_running(self, uid: str) -> bool:
        """Whether victims of this pod are being told to go at this moment."""
        return uid in self._running

    def carry_out(self, pod: PodInfo, nomination: Nomination) -> bool:
        """Nominate the pod and evict its victims soon; returns whether that was begun."""
        if pod.uid in self._running or not self._may_write():
            return False
        lower = self._nominated.clear_lower(nomination.node, pod.priority)
        if not self._nominated.nominate(pod, nomination.node, [victim.uid for victim in nomination.victims]):
            return False
        self._running.add(pod.uid)
        work = self._carry_out(pod, nomination, [one.pod for one in lower if one.pod.uid != pod.uid])
        try:
            self._session.submit(work)
        except RuntimeError:
            work.close()
            self._running.discard(pod.uid)
            self._nominated.clear(pod.uid)
            return False
        return True

    def withdraw(self, pod: PodInfo) -> None:
        """No room is made for the pod any more: take the nomination out of its status."""
        self._nominated.clear(pod.uid)
        work = self._clear(pod)
        try:
            self._session.submit(work)
        except RuntimeError:
            work.close()

    # In the loop of the session

    async def _carry_out(self, pod: PodInfo, nomination: Nomination, lower: Sequence[PodInfo]) -> None:
        try:
            await self._nominate(pod, nomination.node)
            for one in lower:
                await self._clear(one)
            gate = asyncio.Semaphore(_AT_ONCE)
            ends = await asyncio.gather(
                *(self._evict(victim, pod, nomination.node, gate) for victim in nomination.victims),
                return_exceptions=True,
            )
            for end in ends:
                if isinstance(end, BaseException):
                    raise end
            if not all(ends):
                self._running.discard(pod.uid)
                await asyncio.to_thread(self._failed, pod)  # it may have been refused another nomination meanwhile
        except _Failed as error:
            self.failures += 1
            logger.warning(
                "preemption failed, the pod will be tried again",
                extra={"pod": f"{pod.namespace}/{pod.name}", "node": nomination.node, "why": str(error)},
            )
            await self._give_up(pod)
        except Exception:
            self.failures += 1
            logger.exception("preemption failed", extra={"pod": f"{pod.namespace}/{pod.name}"})
            await self._give_up(pod)
        finally:
            self._running.discard(pod.uid)

    async def _nominate(self, pod: PodInfo, node: str) -> None:
        answer = await self._send("PATCH", pod_path(pod) + "/status", nomination_body(pod, node), MERGE)
        if is_gone(answer):
            raise _Failed(f"the pod is gone: {answer.text}")
        _require(answer, "it cannot be nominated (grant patch on pods/status)")

    async def _clear(self, pod: PodInfo) -> None:
        """Best effort: the next nomination replaces it, and other schedulers only lose a hint."""
        await self._send("PATCH", pod_path(pod) + "/status", nomination_body(pod, ""), MERGE)

    async def _evict(self, victim: PodInfo, preemptor: PodInfo, node: str, gate: asyncio.Semaphore) -> bool:
        """Evict one pod; returns whether the room is still wanted."""
        if victim.terminating:
            return True  # it has been told already
        async with gate:
            body = condition_body(victim, preemptor, self._clock())
            answer = await self._insist(preemptor, node, "PATCH", pod_path(victim) + "/status", body, STRATEGIC_MERGE)
            if not self._is_wanted(preemptor, node):
                return False
            if not is_gone(answer):  # whether it is gone the deletion will tell
                _require(answer, f"{victim.namespace}/{victim.name} cannot be told why (grant patch on pods/status)")
                if _is_terminating(answer):
                    return True  # it goes for another pod, too
            path, body = pod_path(victim), delete_body(victim)
            answer = await self._insist(preemptor, node, "DELETE", path, body, "application/json")
        if is_gone(answer):
            return True
        if not answer.is_success and not self._is_wanted(preemptor, node):
            return False
        _require(answer, f"{victim.namespace}/{victim.name} cannot be evicted (grant delete on pods)")
        self._count()
        # Names of other namespaces are nobody's business (kube-scheduler names the UID for that reason).
        is_near = victim.namespace == preemptor.namespace
        who = f"{preemptor.name} ({preemptor.uid})" if is_near else preemptor.uid
        self._tell(victim, "Preempted", f"Preempted by pod {who} on node {node}")
        return True

    def _is_wanted(self, preemptor: PodInfo, node: str) -> bool:
        """Whether the pod still waits for room on that node."""
        one = self._nominated.of(preemptor.uid)
        return one is not None and one.node == node

    async def _insist(
        self, preemptor: PodInfo, node: str, method: str, path: str, body: bytes, content_type: str
    ) -> Answer:
        """The first answer that settles the request; any answer once the room is not wanted any more."""
        while True:
            answer = await self._send(method, path, body, content_type, wanted=lambda: self._is_wanted(preemptor, node))
            if not is_passing_or_conflict(answer) or not self._is_wanted(preemptor, node):
                return answer
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _send(
        self, method: str, path: str, body: bytes, content_type: str, *, wanted: Callable[[], bool] = lambda: True
    ) -> Answer:
        """Whatever is sent here may be sent twice."""
        return await request_again(
            self._session,
            method,
            path,
            lambda: body,
            content_type=content_type,
            worth_it=is_passing_or_conflict,
            still_wanted=wanted,
        )

    async def _give_up(self, pod: PodInfo) -> None:
        await asyncio.to_thread(self._end_nomination, pod)  # the loop must not wait for the lock
        await self._clear(pod)

    def _end_nomination(self, pod: PodInfo) -> None:
        with self._locked():
            self._nominated.clear(pod.uid)
        self._running.discard(pod.uid)
        self._failed(pod)


def _require(answer: Answer, what: str) -> None:
    if not answer.is_success:
        raise _Failed(f"{what}: {answer.text or answer.status}")


def _is_terminating(answer: Answer) -> bool:
    """Whether the pod of an answer has been told to go."""
    try:
        return bool(orjson.loads(answer.body)["metadata"].get("deletionTimestamp"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
