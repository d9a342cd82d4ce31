"""The plans of this cluster as they were read last, and what they say of a pod now."""

from __future__ import annotations

from collections.abc import Sequence

from forecast.calendar import Calendar
from kube.objects.objects import PodInfo
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.plan_book import PlanBook, why_foreign
from rebalancer.planning.cooldown import CooldownOptions
from scorer.live_tables import LiveTables


class KeptPlans:
    """For any thread: a book is replaced as a whole."""

    def __init__(self, tables: LiveTables, options: CooldownOptions) -> None:
        self._tables, self._options = tables, options
        self.book = PlanBook()

    def replace(self, plans: Sequence[RebalancePlan]) -> None:
        """These are all plans, oldest first."""
        self.book = PlanBook.of(plans, self.calendar())

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
