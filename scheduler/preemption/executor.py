"""Carries nominations out: a pod, or the members of a gang together, are nominated, and their victims are evicted.

    in memory    pods of lower priority lose their nomination to the node, and it is withdrawn; the pods are nominated
    API server   status.nominatedNodeName of all of them --one is gone--> nothing is evicted
                     |
                 each victim: condition DisruptionTarget, delete, event Preempted
                     |                 |                        |
                   done              refused: the nomination    no answer, 409, 429, 5xx: asked again while the
                                     ends, the pod tries again  nomination lasts

A nomination that ended because one victim's answer was lost would have the pod evict others in addition to those that
go already. The nominations of a gang end together: then no further victim of any member is evicted.

Needs patch on pods/status and delete on pods. A replica that may not write evicts no pod.

What preemption asks of the API server: paths and bodies. UIDs go along as preconditions: a later pod of the same
name is left alone.

Source: framework/preemption/executor.go; KEP-3329 for the condition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from kube.client.api_answer import ApiAnswer, is_gone
from kube.client.pod_writes import MERGE, nomination_body, pod_path
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session, begin, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.plugins import Nomination
from scheduler.preemption.nominated import NominatedPods

# What preemption asks of the API server: paths and bodies. UIDs go along as preconditions: a later pod of the same
# name is left alone.
#
# Source: framework/preemption/executor.go; KEP-3329 for the condition.

logger = logging.getLogger(__name__)
_AT_ONCE: Final = 16

_AGAIN_SECONDS: Final = 1.0
"""Between two rounds of tries."""

_REFUSALS: Final = 400

Tell = Callable[[PodInfo, str, str], None]
"""Posts an event soon, and never waits: the pod it is about, its reason, its note."""


def condition_body(victim: PodInfo, preemptor: PodInfo, now: float) -> bytes:
    """See disruption_body: it makes room for another."""
    why = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod"
    return disruption_body(victim, "PreemptionByScheduler", why, now)


def disruption_body(pod: PodInfo, reason: str, message: str, now: float, *, goes: bool = True) -> bytes:
    """Return a strategic merge patch of the status, by which controllers see that the pod has not failed by itself.

    goes : False = it stays after all
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True" if goes else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}})


def delete_body(victim: PodInfo, resource_version: str = "") -> bytes:
    """DeleteOptions. The pod's own grace period applies. resource_version: nothing has changed since; '' = whatever."""
    preconditions = {"uid": victim.uid} | ({"resourceVersion": resource_version} if resource_version else {})
    return msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})


T = TypeVar("T")


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
        violations: Callable[[Sequence[PodInfo]], int] = lambda victims: 0,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        violations : how many of these victims violate a budget as it is now
        locked    : takes the lock of the tables
        failed    : called without the lock with a pod whose preemption failed: it is to be tried again
        evicted   : called for each victim whose eviction the API server accepted; quick
        may_write : the lease says so
        clock     : unix seconds
        """
        self._session, self._nominated, self._locked = session, nominated, locked
        self._tell, self._failed, self._count, self._violations = tell, failed, evicted, violations
        self._may_write, self._clock = may_write, clock
        self._running = nominated.evicting
        self._writing = WeakValueDictionary[str, asyncio.Lock]()  # by UID, of the loop
        nominated.on_withdrawn.append(self.withdraw)
        self.failures = 0

    def is_running(self, uid: str) -> bool:
        """Return whether victims of this pod are being evicted at this moment."""
        return uid in self._running

    def carry_out(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        """Nominate a pod, or members of a gang, and evict their victims soon; returns whether that was begun."""
        uids = [pod.uid for pod, _ in seats]
        if not self._running.isdisjoint(uids) or not self._may_write():
            return False
        if not self._nominated.nominate_all(seats):
            for pod, _ in seats:
                if pod.nominated_node:
                    self.withdraw(pod)
            return False
        self._running.update(uids)
        if begin(self._session, self._carry_out(seats, self._violations(_victims(seats)))) is None:
            self._running.difference_update(uids)
            self._nominated.forget(uids)
            return False
        return True

    def withdraw(self, pod: PodInfo) -> None:
        """No room is made for the pod any more: take the nomination out of its status."""
        self._nominated.clear(pod.uid)
        if self._may_write():
            begin(self._session, self._clear(pod))

    # In the loop of the session

    async def _carry_out(self, seats: Sequence[tuple[PodInfo, Nomination]], violations: int) -> None:
        """violations: of budgets, as the plan has it."""
        pods = [pod for pod, _ in seats]
        try:
            gate = asyncio.Semaphore(_AT_ONCE)
            await _all(self._nominate(pod, there.node, gate) for pod, there in seats)
            if self._violations(_victims(seats)) > violations:  # the nominations took their time
                raise _Failed("a PodDisruptionBudget allows less than when the victims were chosen")
            ends = await _all(self._evict(victim, pod, seats, gate) for pod, there in seats for victim in there.victims)
            self._running.difference_update(pod.uid for pod in pods)
            if not all(ends):
                await asyncio.to_thread(self._failed, pods[0])  # may have been refused another nomination meanwhile
        except _Failed as error:
            self.failures += 1
            logger.warning(
                "preemption failed, the pod will be tried again",
                extra={"pod": f"{pods[0].namespace}/{pods[0].name}", "pods": len(pods), "why": str(error)},
            )
            await self._give_up(pods)
        except Exception:
            self.failures += 1
            logger.exception("preemption failed", extra={"pod": f"{pods[0].namespace}/{pods[0].name}"})
            await self._give_up(pods)

    async def _nominate(self, pod: PodInfo, node: str, gate: asyncio.Semaphore) -> None:
        async with gate, self._status_of(pod):
            answer = await self._send("PATCH", pod_path(pod) + "/status", nomination_body(pod, node), MERGE)
        if is_gone(answer):
            raise _Failed(f"the pod is gone: {answer.text}")
        _require(answer, "it cannot be nominated (grant patch on pods/status)")

    async def _clear(self, pod: PodInfo) -> None:
        """Unless the pod is nominated anew by then. Best effort: other schedulers only lose a hint."""
        async with self._status_of(pod):
            path, body = pod_path(pod) + "/status", nomination_body(pod, "")
            await self._send("PATCH", path, body, MERGE, wanted=lambda: self._nominated.of(pod.uid) is None)

    def _status_of(self, pod: PodInfo) -> asyncio.Lock:
        """One request at a time says where the pod is nominated: the last one counts."""
        return self._writing.setdefault(pod.uid, asyncio.Lock())

    async def _evict(
        self,
        victim: PodInfo,
        preemptor: PodInfo,
        seats: Sequence[tuple[PodInfo, Nomination]],
        gate: asyncio.Semaphore,
    ) -> bool:
        """Evict one pod; returns whether the room is still wanted. seats: of the preemptor and its gang."""
        if victim.stands_in:  # it has the highest priority, so none is chosen
            raise _Failed(f"{victim.namespace}/{victim.name} holds the room of a Reservation, and is no pod")
        if victim.terminating:
            return True  # it is being deleted already
        async with gate:
            if not self._is_wanted(seats):
                return False
            body = condition_body(victim, preemptor, self._clock())
            answer = await self._insist(seats, "PATCH", pod_path(victim) + "/status", body, STRATEGIC_MERGE)
            if not self._is_wanted(seats):
                return False
            if not is_gone(answer):  # the deletion will show whether it is gone
                self._require_of(victim, answer, "cannot get a condition that says why (grant patch on pods/status)")
                if _is_terminating(answer):
                    return True  # it goes for another pod, too
            path, body = pod_path(victim), delete_body(victim)
            answer = await self._insist(seats, "DELETE", path, body, "application/json")
        if is_gone(answer):
            return True
        if not answer.is_success and not self._is_wanted(seats):
            return False
        self._require_of(victim, answer, "cannot be evicted (grant delete on pods)")
        self._count()
        # Names of other namespaces stay private (kube-scheduler names the UID for that reason).
        is_near = victim.namespace == preemptor.namespace
        who = f"{preemptor.name} ({preemptor.uid})" if is_near else preemptor.uid
        node = next(there.node for pod, there in seats if pod.uid == preemptor.uid)
        self._tell(victim, "Preempted", f"Preempted by pod {who} on node {node}")
        return True

    def _require_of(self, victim: PodInfo, answer: ApiAnswer, what: str) -> None:
        if answer.status >= _REFUSALS and not is_passing_or_conflict(answer):
            self._nominated.refuses(victim.uid, self._clock())
        _require(answer, f"{victim.namespace}/{victim.name} {what}")

    def _is_wanted(self, seats: Sequence[tuple[PodInfo, Nomination]]) -> bool:
        """Whether all these pods still wait for room on their nodes."""
        found = ((self._nominated.of(pod.uid), there.node) for pod, there in seats)
        return all(one is not None and one.node == node for one, node in found)

    async def _insist(
        self, seats: Sequence[tuple[PodInfo, Nomination]], method: str, path: str, body: bytes, content_type: str
    ) -> ApiAnswer:
        """The first answer that settles the request; any answer once the room is not wanted any more."""
        while True:
            answer = await self._send(method, path, body, content_type, wanted=lambda: self._is_wanted(seats))
            if not is_passing_or_conflict(answer) or not self._is_wanted(seats):
                return answer
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _send(
        self, method: str, path: str, body: bytes, content_type: str, *, wanted: Callable[[], bool] = lambda: True
    ) -> ApiAnswer:
        """Whatever is sent here may be sent twice."""
        return await request_with_retries(
            self._session,
            method,
            path,
            body,
            content_type=content_type,
            worth_it=is_passing_or_conflict,
            still_wanted=wanted,
        )

    async def _give_up(self, pods: Sequence[PodInfo]) -> None:
        await asyncio.to_thread(self._end_nominations, pods)  # the loop must not wait for the lock
        for pod in pods:
            await self._clear(pod)

    def _end_nominations(self, pods: Sequence[PodInfo]) -> None:
        uids = [pod.uid for pod in pods]
        with self._locked():
            self._nominated.forget(uids)
        self._running.difference_update(uids)
        self._failed(pods[0])  # with a member its gang is tried again


async def _all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results once all have ended; raises what one of them has raised."""
    ends = await asyncio.gather(*works, return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return [end for end in ends if not isinstance(end, BaseException)]


def _victims(seats: Sequence[tuple[PodInfo, Nomination]]) -> list[PodInfo]:
    return [victim for _, there in seats for victim in there.victims]


def _require(answer: ApiAnswer, what: str) -> None:
    if not answer.is_success:
        raise _Failed(f"{what}: {answer.text or answer.status}")


def _is_terminating(answer: ApiAnswer) -> bool:
    """Return whether the pod of an answer is being deleted."""
    try:
        return bool(msgspec.json.decode(answer.body)["metadata"].get("deletionTimestamp"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
