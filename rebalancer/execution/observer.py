"""Reads what the API server has about one move: the pod, other pods of its owner, the target, the Deployment.

Everything is read from the API server rather than from a watch: an executor that has just taken over must not decide
by a state from before. A few moves are under way at a time, so these are a few requests a second.

Needs get and list on pods, get on nodes, replicasets, statefulsets and replicationcontrollers; for surges get on
deployments, list on replicasets and horizontalpodautoscalers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

from msgspec.structs import replace as replace_fields

from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer
from kube.client.pod_writes import pod_path
from kube.decoding.watched_kinds import REFUSED
from kube.session.session_calls import Requests, request_with_retries
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.observation import DeploymentSeen, Observation, PodSeen
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, moment
from rebalancer.execution.wire_seen import (
    deployment_seen,
    marked_deployments,
    pod_seen,
    pods_seen,
    wanted_replicas,
    why_no_target,
)

T = TypeVar("T")

_MISSING: Final = 404
_SECONDS: Final = 5.0
_CONTROLLERS: Final = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets/{name}",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}",
    "ReplicationController": "/api/v1/namespaces/{namespace}/replicationcontrollers/{name}",
}
_REPLICA_SETS: Final = "/apis/apps/v1/replicasets"
_PAGE: Final = 200
_NO_POD: Final = "gone"
_SURGES: Final = frozenset({MoveState.SURGING, MoveState.EVICTING, MoveState.WITHDRAWING})


class Unobserved(ForecastError):
    """The API server did not say how the move stands; it may say so later."""


class Observer:
    """For the event loop of the session. Raises Unobserved."""

    def __init__(self, session: Requests, *, seconds: float = _SECONDS) -> None:
        """seconds: timeout of one request"""
        self._session, self._seconds = session, seconds

    async def observe(self, move: MoveSpec, record: MoveStatus) -> Observation:
        """Return what matters to the next step of a move; the caller adds what it knows itself."""
        pod = await self._pod(move)
        if record.state is MoveState.PLANNED:
            return await self._before(move, pod)
        siblings = await self._siblings(move, record.owner, record.selector)
        seen = Observation(pod=pod, siblings=siblings)
        if record.state is MoveState.EVICTED:
            target = await self._target(move)
            return replace(seen, target=target, wanted=await self._wanted(move, record))
        if record.replicas is not None and record.state in _SURGES:
            target = await self._target(move) if record.state is MoveState.SURGING else ""
            return replace(seen, target=target, deployment=await self._deployment(move, record.owner))
        return seen

    async def surges(self, most: int, now: float) -> list[tuple[MoveSpec, MoveStatus]]:
        """Return the Deployments that are scaled up by us, as moves that are to be withdrawn.

        They are found by their ReplicaSets, which the rebalancer may list, and then asked themselves: in any order, as
        marks that mean nothing any more, or that a tenant made, must not hide those that come after them.
        most : that are returned; ten times as many Deployments are asked
        """
        names, token = dict[tuple[str, str], None](), ""
        while True:
            answer = await self._get(f"{_REPLICA_SETS}?{urlencode({'limit': _PAGE, 'continue': token})}")
            if answer is None:
                break
            marked, token = _decoded(marked_deployments, answer.body, "a list of ReplicaSets")
            names |= dict.fromkeys(marked)
            if not token:
                break
        found = list[tuple[MoveSpec, MoveStatus]]()
        for one in random.sample(list(names), min(len(names), 10 * most)):
            if len(found) < most and (surge := await self._surge(*one, now)) is not None:
                found.append(surge)
        return found

    async def _surge(self, namespace: str, name: str, now: float) -> tuple[MoveSpec, MoveStatus] | None:
        owner = f"{namespace}/Deployment/{name}"
        any_pod = MoveSpec(namespace, _NO_POD, "", f"Deployment/{name}", source="", to="")
        deployment = await self._deployment(any_pod, owner)
        if deployment is None or not deployment.surged_for or deployment.is_taken_over(deployment.recorded or 0):
            return None
        pods = await self._siblings(any_pod, owner, "")
        pod = next((one for one in pods if one.uid == deployment.surged_for), None)
        record = MoveStatus(
            deployment.surged_for, MoveState.WITHDRAWING, moment(now), owner=owner, replicas=deployment.recorded or 0
        )
        return replace_fields(any_pod, pod=_NO_POD if pod is None else pod.name, uid=deployment.surged_for), record

    async def _before(self, move: MoveSpec, pod: PodSeen | None) -> Observation:
        """What decides whether the move may begin, and what will tell its replacement from other pods."""
        if pod is None:
            return Observation()
        siblings = await self._siblings(move, pod.owner, pod.selector)
        deployment = await self._deployment(move, pod.owner) if move.surge else None
        return Observation(pod=pod, siblings=siblings, target=await self._target(move), deployment=deployment)

    async def _pod(self, move: MoveSpec) -> PodSeen | None:
        answer = await self._get(pod_path(move))
        found = None if answer is None else _decoded(pod_seen, answer.body, "a pod")
        return found if found is not None and found.uid == move.uid else None

    async def _siblings(self, move: MoveSpec, owner: str, selector: str) -> tuple[PodSeen, ...]:
        path = f"/api/v1/namespaces/{quote(move.namespace, safe='')}/pods"
        if selector:
            path += f"?{urlencode({'labelSelector': selector})}"
        answer = await self._get(path)
        pods = [] if answer is None else _decoded(pods_seen, answer.body, "a list of pods")
        return tuple(pod for pod in pods if pod.owner == owner and pod.uid != move.uid)

    async def _target(self, move: MoveSpec) -> str:
        answer = await self._get(f"/api/v1/nodes/{quote(move.to, safe='')}")
        return "there is no such node" if answer is None else _decoded(why_no_target, answer.body, "a node")

    async def _wanted(self, move: MoveSpec, record: MoveStatus) -> int | None:
        """Pods that the top owner wants; None = it is of a kind that does not say so."""
        kind, name = _owner(record.owner)
        path = _CONTROLLERS.get(kind) or (_DEPLOYMENT if kind == "Deployment" else "")
        if not path:
            return None
        answer = await self._get(path.format(namespace=quote(move.namespace, safe=""), name=quote(name, safe="")))
        return 0 if answer is None else _decoded(wanted_replicas, answer.body, f"a {kind}")

    async def _deployment(self, move: MoveSpec, owner: str) -> DeploymentSeen | None:
        kind, name = _owner(owner)
        if kind != "Deployment":
            return None
        answer = await self._get(deployment_path(move.namespace, name))
        if answer is None:
            return None
        of_namespace = f"/apis/autoscaling/v2/namespaces/{quote(move.namespace, safe='')}/horizontalpodautoscalers"
        autoscalers = await self._get(of_namespace)
        listed = b'{"items": []}' if autoscalers is None else autoscalers.body
        return _decoded(lambda body: deployment_seen(body, listed), answer.body, "a Deployment")

    async def _get(self, path: str) -> ApiAnswer | None:
        """None = not found."""
        answer = await request_with_retries(self._session, "GET", path, seconds=self._seconds, tries=2)
        if answer.status == _MISSING:
            return None
        if answer.status == 403:
            raise Unobserved(f"{answer.text}: grant the rights in deploy/base/rebalancer/rbac.yaml")
        if not answer.is_success:
            raise Unobserved(answer.text or f"the API server answered {answer.status} to GET {path}")
        return answer


_DEPLOYMENT: Final = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def deployment_path(namespace: str, name: str) -> str:
    """Return the path of a Deployment."""
    return _DEPLOYMENT.format(namespace=quote(namespace, safe=""), name=quote(name, safe=""))


def _owner(owner: str) -> tuple[str, str]:
    """Return kind and name of a top owner, namespace/Kind/name; '' = a record that others wrote does not say it."""
    _, _, rest = owner.partition("/")
    kind, _, name = rest.partition("/")
    return kind, name


def _decoded(decode: Callable[[bytes], T], body: bytes, what: str) -> T:
    try:
        return decode(body)
    except REFUSED as error:
        raise Unobserved(f"{what} cannot be read: {error}") from error
