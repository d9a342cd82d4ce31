"""Evictions asked for by an EvictionRequest, where the API server serves them: one per pod that moves, of its plan.

    POST evictionrequests/move-UID, intent Eviction --> responders make the pod go: those that it names, then the
        |                                               Eviction API, with its disruption budgets
        |  a responder that fails, or none: condition Failed --> intent Withdrawn; the next try asks once more
        |  the move ends before the pod went                 --> intent Withdrawn, before the record says so
        v
    the pod is gone; the request goes with its plan (ownerReferences)

Discovery decides whether it is asked so. Requests that no controller looks at (Kubernetes 1.37 has the API and no
controller) are withdrawn, and the pod is evicted through the Eviction API. Both ways name the pod by its UID: no pod
is evicted twice. A killed rebalancer finds the request by its name.

https://kep.k8s.io/4563; staging/src/k8s.io/api/lifecycle/v1alpha1/types.go of Kubernetes 1.37 and 1.38. Needs get,
list, create and patch on evictionrequests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import quote

import msgspec

from kube.client.api_answer import ApiAnswer
from kube.client.pod_writes import MERGE
from kube.session.session_calls import Requests, is_passing
from rebalancer.execution.move_rooms import MADE_BY, REBALANCER
from rebalancer.execution.observation import Attempt, Reply
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import API_VERSION as PLAN_API_VERSION
from rebalancer.execution.plan_wire import KIND as PLAN_KIND
from rebalancer.execution.plan_wire import MoveSpec

logger = logging.getLogger(__name__)

API_VERSION: Final = "lifecycle.k8s.io/v1alpha1"
REQUESTER: Final = "forecast-scheduler.io/rebalancer"

_RESOURCE: Final = "evictionrequests"
_EVICTION, _WITHDRAWN = "Eviction", "Withdrawn"
_INVALID: Final = "EvictionInvalid"  # such as of a pod in a PodGroup
_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 600.0
"""How long what discovery said holds: gates change with a restart of the API server."""
_UNATTENDED_SECONDS: Final = 30.0
"""evictionrequest-controller observes a request within a second; a new leader of it within its lease of 15 s."""
_MISSING, _FORBIDDEN, _CONFLICT = 404, 403, 409


class _Named(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Named] = []


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    uid: str = ""


class _Target(msgspec.Struct):
    pod: _Pod | None = None


class _Spec(msgspec.Struct):
    target: _Target = msgspec.field(default_factory=_Target)
    requester: str = ""
    intent: str = ""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    generation: int = 0


class _Request(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)

    def condition(self, kind: str) -> _Condition | None:
        """Return a condition that is True of the newest intent."""
        if self.status.observed_generation < self.metadata.generation:
            return None
        return next((one for one in self.status.conditions if one.type == kind and one.status == "True"), None)


class _Requests(msgspec.Struct):
    items: list[_Request] = []


class EvictionRequests:
    """For the event loop of the session. clock: unix seconds."""

    def __init__(self, session: Requests, *, clock: Callable[[], float]) -> None:
        self._session, self._clock = session, clock
        self._is_served, self._look_at = False, float("-inf")
        self._asked_at: dict[str, float] = {}  # by UID of the pod
        self._by_hand: set[str] = set()  # UIDs of pods that are evicted through the Eviction API

    async def ask(self, plan: RebalancePlan, move: MoveSpec) -> Attempt | None:
        """Ask for the eviction, or see how far it is; None = the Eviction API is to be used."""
        if move.uid in self._by_hand or not await self._served():
            return None
        answer = await self._created_or_read(plan, move)
        if answer.status in (_FORBIDDEN, _MISSING):
            why = "grant the rights in deploy/base/rebalancer/rbac.yaml" if answer.status == _FORBIDDEN else ""
            self._evicted_by_hand(move, f"{answer.text} {why}".strip())
            return None
        found = _decoded(answer)
        if found is None:
            reply = Reply.UNKNOWN if is_passing(answer) else Reply.FAILED
            return Attempt(reply, self._clock(), answer.text or "an EvictionRequest that cannot be read")
        if found.spec.requester != REQUESTER or found.spec.target.pod is None or found.spec.target.pod.uid != move.uid:
            self._evicted_by_hand(move, f"another client made EvictionRequest {_name(move.uid)}")
            return None
        return await self._follow(move, found)

    async def withdraw(self, move: MoveSpec) -> ApiAnswer | None:
        """See to it that no responder goes on; None = none does, else the answer that leaves it open."""
        self._by_hand.discard(move.uid)
        if self._asked_at.pop(move.uid, None) is None and not await self._served():
            return None
        answer = await self._intend(move.namespace, move.uid, _WITHDRAWN)
        return None if answer.is_success or answer.status == _MISSING else answer

    async def sweep(self, keep: Collection[str]) -> None:
        """Withdraw all requests of ours but those for pods of these UIDs: what a killed process has left."""
        if not await self._served():
            return
        path = f"/apis/{API_VERSION}/{_RESOURCE}?labelSelector={quote(f'{MADE_BY}={REBALANCER}', safe='')}"
        answer = await self._session.request("GET", path, None, seconds=_SECONDS)
        try:
            found = msgspec.json.decode(answer.body, type=_Requests).items if answer.is_success else []
        except msgspec.DecodeError:
            found = []
        for one in found:
            uid = one.spec.target.pod.uid if one.spec.target.pod is not None else ""
            if one.spec.intent == _EVICTION and one.spec.requester == REQUESTER and uid and uid not in keep:
                fields = {"namespace": one.metadata.namespace, "request": one.metadata.name}
                logger.warning("an EvictionRequest without a move is withdrawn", extra=fields)
                await self._intend(one.metadata.namespace, uid, _WITHDRAWN)

    def forget(self) -> None:
        """Another replica may have led."""
        self._asked_at.clear()
        self._by_hand.clear()
        self._look_at = float("-inf")

    # Inside

    async def _served(self) -> bool:
        if self._clock() >= self._look_at:
            answer = await self._session.request("GET", f"/apis/{API_VERSION}", None, seconds=_SECONDS)
            if is_passing(answer):
                return self._is_served
            try:
                names = {one.name for one in msgspec.json.decode(answer.body, type=_Resources).resources}
            except msgspec.DecodeError:
                names = set()
            self._is_served, self._look_at = answer.is_success and _RESOURCE in names, self._clock() + _LOOK_SECONDS
        return self._is_served

    async def _created_or_read(self, plan: RebalancePlan, move: MoveSpec) -> ApiAnswer:
        path = _path(move.namespace, move.uid)
        if move.uid in self._asked_at:
            answer = await self._session.request("GET", path, None, seconds=_SECONDS)
            if answer.status != _MISSING:
                return answer
        of_plan = {"apiVersion": PLAN_API_VERSION, "kind": PLAN_KIND, "name": plan.name, "uid": plan.uid}
        body = {
            "apiVersion": API_VERSION,
            "kind": "EvictionRequest",
            "metadata": {"name": _name(move.uid), "labels": {MADE_BY: REBALANCER}, "ownerReferences": [of_plan]},
            "spec": {
                "target": {"pod": {"name": move.pod, "uid": move.uid}},
                "requester": REQUESTER,
                "intent": _EVICTION,
            },
        }
        answer = await self._session.request(
            "POST", _collection(move.namespace), msgspec.json.encode(body), seconds=_SECONDS
        )
        if answer.status == _CONFLICT:  # an earlier try, an earlier leader or an earlier night has made it
            answer = await self._session.request("GET", path, None, seconds=_SECONDS)
        if answer.is_success:
            self._asked_at[move.uid] = self._clock()
        return answer

    async def _follow(self, move: MoveSpec, found: _Request) -> Attempt | None:
        now = self._clock()
        if found.spec.intent != _EVICTION:
            answer = await self._intend(move.namespace, move.uid, _EVICTION)
            self._asked_at[move.uid] = now
            return Attempt(Reply.ASKED if answer.is_success else Reply.FAILED, now, answer.text)
        if found.condition("TargetEvicted") is not None:
            return Attempt(Reply.ACCEPTED, now)
        if (failed := found.condition("Failed")) is not None:
            if (left := await self.withdraw(move)) is not None:
                return Attempt(Reply.UNKNOWN, now, left.text)
            if failed.reason == _INVALID:
                self._evicted_by_hand(move, failed.message)
                return None
            return Attempt(Reply.BUDGET, now, failed.message or failed.reason)
        if not found.status.observed_generation and now >= self._asked_at[move.uid] + _UNATTENDED_SECONDS:
            if (left := await self.withdraw(move)) is not None:
                return Attempt(Reply.UNKNOWN, now, left.text)
            self._evicted_by_hand(move, "no controller looks at EvictionRequests")
            return None
        return Attempt(Reply.ASKED, now, "its responders have not made it go yet")

    async def _intend(self, namespace: str, uid: str, intent: str) -> ApiAnswer:
        body = msgspec.json.encode({"spec": {"intent": intent}})
        path = _path(namespace, uid)
        return await self._session.request("PATCH", path, body, content_type=MERGE, seconds=_SECONDS)

    def _evicted_by_hand(self, move: MoveSpec, why: str) -> None:
        self._by_hand.add(move.uid)
        fields = {"pod": f"{move.namespace}/{move.pod}", "why": why}
        logger.warning("no EvictionRequest for this pod: the Eviction API is asked", extra=fields)


def _decoded(answer: ApiAnswer) -> _Request | None:
    try:
        return msgspec.json.decode(answer.body, type=_Request) if answer.is_success else None
    except msgspec.DecodeError:
        return None


def _name(uid: str) -> str:
    return f"move-{uid}"


def _collection(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{quote(namespace, safe='')}/{_RESOURCE}"


def _path(namespace: str, uid: str) -> str:
    return f"{_collection(namespace)}/{quote(_name(uid), safe='')}"
