"""The plans of this cluster as they were read last, and what they say of a pod now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from cluster.live_tables import LiveTables
from forecast.calendar import Calendar
from kube.objects.objects import PodInfo
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.wire import Mode
from rebalancer.plan_book import PlanBook, why_foreign
from rebalancer.planning.cooldown import CooldownOptions

_REMEMBERED: Final = timedelta(days=1)


class KeptPlans:
    """For any thread: a book is replaced as a whole."""

    def __init__(self, tables: LiveTables, options: CooldownOptions) -> None:
        self._tables, self._options = tables, options
        self.book = PlanBook()

    def replace(self, plans: Sequence[RebalancePlan], going: Sequence[RebalancePlan] = ()) -> None:
        """These are all plans, oldest first. going: those that are being deleted.

        Plans of the last day that are not there any more are remembered: a deleted record gives no budget back.
        """
        there, since = {plan.uid for plan in plans}, self._tables.now() - _REMEMBERED
        known = {plan.uid: plan for plan in (*self.book.deleted, *self.book.plans, *going)}
        deleted = [
            plan
            for uid, plan in known.items()
            if uid not in there and plan.spec.mode is Mode.ON and plan.spec.created_at > since
        ]
        self.book = PlanBook.of(plans, self.calendar(), deleted)

    def why_foreign(self, plan: RebalancePlan) -> str:
        """Return why a plan cannot be one of ours; '' = it may be."""
        return why_foreign(plan, self._tables.now(), self.calendar())

    def calendar(self) -> Calendar:
        """Return the calendar of the model; UTC where there is none."""
        in_use = self._tables.model
        return Calendar() if in_use is None else in_use.loaded.model.calendar

    def cooling_until(self, pod: PodInfo) -> float | None:
        """Return unix seconds until which a pod rests after its moves; None = it was not moved lately."""
        return self.book.cooling_until(pod.uid, self.calendar(), self._options)

    def nodes_left(self, pod: PodInfo) -> frozenset[str]:
        """Return nodes that a pod was moved away from lately."""
        return self.book.nodes_left(pod.uid, self.calendar().day_and_slot(self._tables.now())[0], self._options)
