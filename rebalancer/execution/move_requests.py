"""The requests that change the cluster for a move, one method per act, and what became of each.

Needs create on pods/eviction; patch on pods/status for nominations; for surges patch on deployments and on pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kube.client.api_answer import ApiAnswer
from kube.client.eviction import Evicted, eviction_body, eviction_of, eviction_path
from kube.client.pod_writes import MERGE, PodIdentity, nomination_body, pod_path
from kube.session.session_calls import Requests, is_passing
from rebalancer.execution.observation import Attempt, DeploymentSeen, PodSeen, Reply
from rebalancer.execution.observer import deployment_path
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus
from rebalancer.execution.wire_seen import SURGED_FOR

_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_GOES_FIRST: Final = "-1000000"
_SECONDS: Final = 10.0
_CONFLICT: Final = 409

_REPLIES: Final[Mapping[Evicted, Reply]] = {
    Evicted.GOING: Reply.ACCEPTED,
    Evicted.REFUSED: Reply.BUDGET,
    Evicted.NOT_NOW: Reply.FAILED,
    Evicted.UNKNOWN: Reply.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class _Named:
    """A pod by name and UID; implements PodIdentity."""

    namespace: str
    name: str
    uid: str


class MoveRequests:
    """For the event loop of the session. No request is repeated here: the next step decides whether it is sent again.

    clock : unix seconds
    """

    def __init__(self, session: Requests, *, clock: Callable[[], float], seconds: float = _SECONDS) -> None:
        """seconds: timeout of one request"""
        self._session, self._clock, self._seconds = session, clock, seconds

    async def evict(self, move: MoveSpec, *, dry_run: bool = False) -> Attempt:
        """Evict the pod of the move, as disruption budgets allow. dry_run: only ask them."""
        answer = await self._session.request(
            "POST", eviction_path(move), eviction_body(move, dry_run=dry_run), seconds=self._seconds
        )
        if answer.status <= 0:  # none came, or it was not even sent
            return Attempt(Reply.UNKNOWN if is_passing(answer) else Reply.FAILED, self._clock(), answer.text)
        read = eviction_of(answer)
        return Attempt(_REPLIES[read.outcome], self._clock(), read.why)

    async def nominate(self, move: MoveSpec, pod: PodSeen) -> str:
        """Ask the pod's scheduler to try the target first. Best effort; returns why it was not asked, '' = it was."""
        named = _Named(move.namespace, pod.name, pod.uid)
        path, body = f"{pod_path(named)}/status", nomination_body(named, move.to)
        answer = await self._session.request("PATCH", path, body, content_type=MERGE, seconds=self._seconds)
        return "" if answer.is_success else answer.text

    async def surge(self, move: MoveSpec, record: MoveStatus, deployment: DeploymentSeen) -> Attempt:
        """Scale the Deployment up by one and mark it, if it still is as it was read."""
        marked = await self._cost(move, _GOES_FIRST)
        if not marked.is_success:
            return self._attempt(marked)
        before = record.replicas or 0
        return await self._scale(move, deployment, before + 1, f"{move.uid}:{before}")

    async def scale_back(self, move: MoveSpec, record: MoveStatus, deployment: DeploymentSeen) -> Attempt:
        """Scale the Deployment back to the number on record; the ReplicaSet deletes the pod of the lower cost."""
        return await self._scale(move, deployment, record.replicas or 0, None)

    async def withdraw(
        self, move: MoveSpec, record: MoveStatus, deployment: DeploymentSeen, new: PodSeen | None
    ) -> Attempt:
        """Scale the Deployment back such that the new pod goes. Where others want these replicas, they stay."""
        before, is_ours = record.replicas or 0, deployment.has_ours(record.replicas or 0)
        costs: list[tuple[PodIdentity, str | None]] = [(move, None)]
        if is_ours and new is not None:
            costs.append((_Named(move.namespace, new.name, new.uid), _GOES_FIRST))
        for pod, cost in costs:
            answer = await self._cost(pod, cost)
            if is_passing(answer):
                return self._attempt(answer)
            # Whoever has filled a pod's annotations to their limit loses the choice of the pod, and holds up nothing.
        if deployment.is_taken_over(before):
            return Attempt(Reply.ACCEPTED, self._clock())
        return await self._scale(move, deployment, before if is_ours else None, None)

    # Inside

    async def _scale(
        self, move: MoveSpec, deployment: DeploymentSeen, replicas: int | None, mark: str | None
    ) -> Attempt:
        """replicas: None = they stay; mark: None = there is none any more."""
        change: dict[str, Any] = {
            # What was read is what is changed, or nothing: replicas that others set meanwhile are not overwritten.
            "metadata": {"resourceVersion": deployment.version, "annotations": {SURGED_FOR: mark}},
        }
        if replicas is not None:
            change["spec"] = {"replicas": replicas}
        path, body = deployment_path(move.namespace, deployment.name), msgspec.json.encode(change)
        return self._attempt(
            await self._session.request("PATCH", path, body, content_type=MERGE, seconds=self._seconds)
        )

    async def _cost(self, pod: PodIdentity, cost: str | None) -> ApiAnswer:
        """Set which pod a ReplicaSet deletes first; None = none before others."""
        body = msgspec.json.encode({"metadata": {"uid": pod.uid, "annotations": {_DELETION_COST: cost}}})
        return await self._session.request("PATCH", pod_path(pod), body, content_type=MERGE, seconds=self._seconds)

    def _attempt(self, answer: ApiAnswer) -> Attempt:
        if answer.is_success:
            return Attempt(Reply.ACCEPTED, self._clock())
        reply = Reply.UNKNOWN if is_passing(answer) else Reply.FAILED
        return Attempt(reply, self._clock(), answer.text, is_conflict=answer.status == _CONFLICT)
