"""What past plans say, read from their RebalancePlans: nights and their grades, moves that were made, what is due.

Everything that must outlive a restart is in these objects. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from forecast.calendar import Calendar
from forecast.errors import InputError
from forecast.service_key import ServiceKey
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.wire import Trigger
from rebalancer.options import Mode
from rebalancer.planning.cooldown import CooldownOptions, PastMove, first_night, nodes_left
from rebalancer.trust.grade import Verdict
from rebalancer.trust.mode import NightRecord

_NIGHT: Final = "night-"
_SETTLED: Final = timedelta(hours=1)
"""Measurements of a half hour are complete so long after it."""

_GRADED_WITHIN: Final = timedelta(days=3)
"""A plan that could not be graded for so long never is."""


def night_name(night: date) -> str:
    """Return the name of the plan of a night: two replicas cannot both make one."""
    return f"{_NIGHT}{night.isoformat()}"


def unforeseen_name(now: datetime) -> str:
    """Return the name of a plan because of the unforeseen. now: in UTC"""
    return f"unforeseen-{now:%Y-%m-%d-%H%M%S}"


@dataclass(frozen=True, slots=True)
class PlanBook:
    """plans: all that are kept, oldest first."""

    plans: tuple[RebalancePlan, ...] = ()
    _moved: dict[str, tuple[PastMove, ...]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, plans: Sequence[RebalancePlan], calendar: Calendar) -> PlanBook:
        """Read the moves that were made, in the calendar of the cluster."""
        moved: dict[str, tuple[PastMove, ...]] = {}
        for plan in plans:
            for move in plan.spec.moves:
                record = plan.status_of(move)
                if record.evicted_at is not None and record.replacement_uid:
                    night = calendar.day_and_slot(record.evicted_at)[0].toordinal()
                    moved[record.replacement_uid] = (*moved.get(move.uid, ()), PastMove(night, move.source))
        return cls(tuple(plans), moved)

    def find(self, name: str) -> RebalancePlan | None:
        """Return a plan by name."""
        return next((plan for plan in self.plans if plan.name == name), None)

    def nights(self) -> Iterator[NightRecord]:
        """Yield the nights that were planned for, graded or not."""
        for plan in self.plans:
            night = _night_of(plan)
            if night is not None:
                grade = plan.status.grade
                verdict = None if grade is None else Verdict(grade.verdict)
                yield NightRecord(night, Mode(plan.spec.configured or plan.spec.mode), Mode(plan.spec.mode), verdict)

    def due_for_grade(self, now: datetime) -> RebalancePlan | None:
        """Return a plan of a night that has been lived through and is not graded."""
        for plan in self.plans:
            end = plan.spec.created_at + timedelta(hours=plan.spec.predicted.horizon_hours)
            is_due = end + _SETTLED <= now <= end + _GRADED_WITHIN
            if plan.status.grade is None and _night_of(plan) is not None and is_due:
                return plan
        return None

    def unforeseen_on(self, today: date, calendar: Calendar) -> list[ServiceKey]:
        """Return the service of each pod that was to be moved on a local day because of the unforeseen."""
        return [
            ServiceKey(move.namespace, *move.service.split("/", 1))
            for plan in self.plans
            if plan.spec.trigger is Trigger.UNFORESEEN and calendar.day_and_slot(plan.spec.created_at)[0] == today
            for move in plan.spec.moves
        ]

    def cooling_until(self, uid: str, calendar: Calendar, options: CooldownOptions) -> float | None:
        """Return unix seconds until which a pod rests after its moves; None = it was not moved."""
        first = first_night(self._moved.get(uid, ()), options)
        return None if first is None else calendar.midnight(date.fromordinal(first)).timestamp()

    def nodes_left(self, uid: str, today: date, options: CooldownOptions) -> frozenset[str]:
        """Return nodes that a pod was moved away from lately."""
        return frozenset(str(node) for node in nodes_left(self._moved.get(uid, ()), today.toordinal(), options))


def _night_of(plan: RebalancePlan) -> date | None:
    if plan.spec.trigger is not Trigger.NIGHT or not plan.name.startswith(_NIGHT):
        return None
    try:
        return date.fromisoformat(plan.name.removeprefix(_NIGHT))
    except ValueError as error:
        raise InputError(f"RebalancePlan {plan.name} names no night, such as night-2026-03-01: delete it") from error
