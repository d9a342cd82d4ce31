"""Surges without a record: their plan was deleted while they were under way, or they could not be withdrawn in time.

Their Deployments get the replicas back that they had. The mark on a Deployment says that the additional replica is
ours: a leader looks for such marks as it begins, and once an hour. What it cannot take back waits for the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_requests import MoveRequests
from rebalancer.execution.observation import Reply, chosen_replacement
from rebalancer.execution.observer import Observer
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus

logger = logging.getLogger(__name__)

_MOST_FOUND: Final = 100
"""Everybody who may write a Deployment may mark it so: the next look finds others."""


class VanishedPlans:
    """For the event loop of the session."""

    def __init__(self, observer: Observer, requests: MoveRequests) -> None:
        self._observer, self._requests = observer, requests
        self._surges: dict[str, tuple[MoveSpec, MoveStatus]] = {}  # by UID of the pod

    async def look(self, under_way: Collection[str], now: float) -> None:
        """Find all surges but those of these UIDs, which have a record. now: unix seconds. Raises Unobserved."""
        for move, record in await self._observer.surges(_MOST_FOUND, now):
            if move.uid not in under_way and move.uid not in self._surges:
                fields = {"deployment": f"{move.namespace}/{move.service}", "mark": move.uid}
                logger.warning("a Deployment is scaled up for a move that no plan has", extra=fields)
                self.add(move, record)

    def __len__(self) -> int:
        """Surges that are still to be withdrawn."""
        return len(self._surges)

    def forget(self) -> None:
        """Drop all that is left: another replica leads, and this one must write nothing."""
        self._surges.clear()

    def note(self, known: Iterable[RebalancePlan], there: Collection[str]) -> None:
        """Remember the surges under way of plans that were known and are not there any more. there: UIDs of plans."""
        for plan in known:
            if plan.uid in there:
                continue
            logger.warning("a RebalancePlan was deleted while it was carried out", extra={"plan": plan.name})
            for move in plan.spec.moves:
                record = plan.status_of(move)
                if record.state.is_under_way:
                    self.add(move, record)

    def add(self, move: MoveSpec, record: MoveStatus) -> None:
        """Remember a move; one without a surge leaves nothing behind."""
        if record.replicas is not None:
            self._surges[move.uid] = move, replace(record, state=MoveState.WITHDRAWING)

    async def step(self) -> None:
        """Withdraw what is left; what does not succeed is tried again in the next step. Raises Unobserved."""
        for uid, (move, record) in list(self._surges.items()):
            seen = await self._observer.observe(move, record)
            if seen.deployment is None or seen.deployment.surged_for != uid:
                del self._surges[uid]
                continue
            new = chosen_replacement(record, seen.siblings, move.to)
            attempt = await self._requests.withdraw(move, record, seen.deployment, new)
            fields = {"pod": f"{move.namespace}/{move.pod}", "reply": attempt.reply.value, "why": attempt.why}
            logger.info("a surge without a plan is withdrawn", extra=fields)
            is_refused = attempt.reply is Reply.FAILED and not attempt.is_conflict
            if is_refused or seen.deployment.is_taken_over(record.replicas or 0):
                del self._surges[uid]
