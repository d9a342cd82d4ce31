"""Surges whose plan was deleted while they were under way: their Deployments get the recorded replicas back.

Without the plan there is no record any more, so this is kept in memory: a leader that begins after the deletion does
not know of it. The mark on the Deployment says that the additional replica is ours.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from placement.reserved_targets.move_state import MoveState
from rebalancer.execution.observer import Observer
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.replacement import chosen_replacement
from rebalancer.execution.requests import MoveRequests
from rebalancer.execution.wire import MoveSpec, MoveStatus

logger = logging.getLogger(__name__)


class VanishedPlans:
    """For the event loop of the session."""

    def __init__(self, observer: Observer, requests: MoveRequests) -> None:
        self._observer, self._requests = observer, requests
        self._surges: dict[str, tuple[MoveSpec, MoveStatus]] = {}  # by UID of the pod

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
                if record.state.is_under_way and record.replicas is not None:
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
