"""What past plans say, read from their RebalancePlans: nights and their grades, moves that were made, what is due, and
what the plans last read say of a pod now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from cluster.live_tables import LiveTables
from forecast.calendar import Calendar
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from rebalancer.cooldown import CooldownOptions, PastMove, first_night, nodes_left
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import MoveSpec, PlanMode, Trigger
from rebalancer.night_grades import NightRecord, Verdict
from rebalancer.rebalance_settings import RebalanceMode, RebalanceOptions

_NIGHT: Final = re.compile(r"night-([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-[2-9])?")
_UNFORESEEN: Final = "unforeseen-%Y-%m-%d-%H%M%S"

_SETTLED: Final = timedelta(hours=1)
"""Measurements of a half hour are complete so long after it."""

_GRADED_WITHIN: Final = timedelta(days=3)
"""A plan that could not be graded for so long never is."""

_TO_COME: Final = timedelta(hours=26)
"""A plan that is made so much later than now is none of ours, whatever the clocks and time zones of replicas."""

_NIGHTS_APART: Final = 2
"""Days between the night of a name and the day on which the plan was made, other time zones included."""

_BEGINS_WITHIN: Final = timedelta(days=3)
"""Moves of a plan of ours begin within this time after it was made."""

_FIRST_DAY: Final = date(2020, 1, 1)
"""No plan is older than the rebalancer."""

_NIGHT_LASTS: Final = timedelta(hours=12)
"""Plans made so shortly one after the other are of one night, whatever the dates on which their windows end."""

MOST_NAMES: Final = 9

_REMEMBERED: Final = timedelta(days=1)


def night_name(night: date, number: int = 1) -> str:
    """Return the name of the plan of a night: two replicas cannot both make one.

    number : from 2 on, if foreign plans have the names before it; MOST_NAMES at most
    """
    return f"night-{night.isoformat()}" + (f"-{number}" if number > 1 else "")


def unforeseen_name(now: datetime) -> str:
    """Return the name of a plan because of the unforeseen. now: in UTC"""
    return now.strftime(_UNFORESEEN)


def why_foreign(plan: RebalancePlan, now: datetime, calendar: Calendar) -> str:
    """Return why a plan cannot be one of the rebalancer's; '' = it may be.

    Plans are records that decide what is moved, how many pods may still move, and whether the rebalancer is trusted.
    Only the rebalancer may write them (deploy/base/rebalancer/policy.yaml); where others can, this is what shows.
    """
    try:
        return _why_foreign(plan, now, calendar)
    except (ValueError, OverflowError) as error:
        return f"a time in it is beyond the calendar: {error}"


def _why_foreign(plan: RebalancePlan, now: datetime, calendar: Calendar) -> str:
    spec = plan.spec
    made_on = calendar.day_and_slot(spec.created_at)[0]
    if spec.created_at - now > _TO_COME:
        return f"its createdAt, {spec.created_at:%Y-%m-%d}, is yet to come"
    if spec.trigger is Trigger.NIGHT:
        night = _night_of(plan)
        if night is None:
            return "its name is of no night, such as night-2026-03-01"
        if abs((night - made_on).days) > _NIGHTS_APART:
            return f"its name is of another night than its createdAt, {made_on}"
    elif abs(datetime.strptime(f"{plan.name}Z", f"{_UNFORESEEN}%z") - spec.created_at) > timedelta(hours=1):
        return "its name is of another time than its createdAt"
    if spec.start_before is not None and abs(spec.start_before - spec.created_at) > _BEGINS_WITHIN:
        return f"its startBefore is further than {_BEGINS_WITHIN.days} days from its createdAt"
    if len({move.uid for move in spec.moves}) < len(spec.moves):
        return "a pod is in two of its moves"
    for record in plan.status.moves:
        for at in (record.since, record.evicted_at, record.ended_at, record.newest):
            if at is not None and (at - now > _TO_COME or calendar.day_and_slot(at)[0] < _FIRST_DAY):
                return f"its status has a time that cannot be, {at:%Y-%m-%d}"
    return f"its createdAt, {made_on}, cannot be" if made_on < _FIRST_DAY else ""


@dataclass(frozen=True, slots=True)
class PlanBook:
    """
    plans   : all that are kept, oldest first
    deleted : of the last day; what they had begun was done all the same
    """

    plans: tuple[RebalancePlan, ...] = ()
    deleted: tuple[RebalancePlan, ...] = ()
    _moved: dict[str, tuple[PastMove, ...]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, plans: Sequence[RebalancePlan], calendar: Calendar, deleted: Sequence[RebalancePlan] = ()) -> PlanBook:
        """Read the moves that were made, in the calendar of the cluster."""
        moved: dict[str, tuple[PastMove, ...]] = {}
        for plan in sorted((*plans, *deleted), key=lambda plan: plan.spec.created_at):
            for move in plan.spec.moves:
                record = plan.status_of(move)
                if record.evicted_at is not None and record.replacement_uid:
                    night = calendar.day_and_slot(record.evicted_at)[0].toordinal()
                    moved[record.replacement_uid] = (*moved.get(move.uid, ()), PastMove(night, move.source))
        return cls(tuple(plans), tuple(deleted), moved)

    def find(self, name: str) -> RebalancePlan | None:
        """Return a plan by name."""
        return next((plan for plan in self.plans if plan.name == name), None)

    def is_planned(self, night: date, now: datetime) -> bool:
        """Return whether a night has its plan, or had one that was deleted: there is no second budget."""
        return any(
            plan.spec.trigger is Trigger.NIGHT
            and (_night_of(plan) == night or abs(now - plan.spec.created_at) < _NIGHT_LASTS)
            for plan in (*self.plans, *self.deleted)
        )

    def beyond_budget(
        self, move: MoveSpec, options: RebalanceOptions, calendar: Calendar, *, replicas: int | None = None
    ) -> str:
        """Return why a move must not begin, since those before it use up the budget; '' = it may.

        replicas : of its service now; None = not known

        Plans of ours keep within it. This holds for all plans of a night, or of a day because of the unforeseen,
        together, whoever wrote them and whether they are still there. A service has one budget for both.
        """
        plan = next((one for one in reversed(self.plans) if move in one.spec.moves), None)
        if plan is None:
            return "no plan that was read has this move"
        budget = options.budget
        before = self._before(plan, move, calendar)
        of_occasion = [one for is_of_it, one in before if is_of_it]
        of_namespace = [one for one in of_occasion if one.namespace == move.namespace]
        n_of_service = sum(_is_same_service(one, move) for _, one in before)
        of_service = budget.per_service if replicas is None else budget.of_service(replicas)
        if plan.spec.trigger is Trigger.UNFORESEEN:
            is_over = len(of_occasion) >= options.unforeseen.per_day or n_of_service >= max(
                of_service, options.unforeseen.per_service
            )
        else:
            is_over = (
                len(of_occasion) >= budget.most
                or len(of_namespace) >= budget.per_namespace
                or n_of_service >= of_service
            )
        return "the moves before it use up the budget: rebalance.budget, rebalance.unforeseen" if is_over else ""

    def _before(self, plan: RebalancePlan, move: MoveSpec, calendar: Calendar) -> list[tuple[bool, MoveSpec]]:
        """Return the moves before one in its plan and in those of the same hours, and whether of one occasion."""
        occasion, before = _occasion(plan, calendar), list[tuple[bool, MoveSpec]]()
        for one in sorted((*self.plans, *self.deleted), key=lambda one: (one.created, one.name)):
            if one is plan:
                return before + [(True, other) for other in plan.spec.moves[: plan.spec.moves.index(move)]]
            is_near = abs(plan.spec.created_at - one.spec.created_at) < _NIGHT_LASTS
            is_night = one.spec.trigger is plan.spec.trigger is Trigger.NIGHT
            is_of_it = _occasion(one, calendar) == occasion or (is_near and is_night)
            if one.spec.mode is PlanMode.ON and (is_of_it or is_near):
                before += [(is_of_it, other) for other in one.spec.moves]
        return before

    def nights(self) -> Iterator[NightRecord]:
        """Yield the nights that were planned for, graded or not."""
        for plan in self.plans:
            night = _night_of(plan)
            if night is not None:
                grade = plan.status.grade
                verdict = None if grade is None else Verdict(grade.verdict)
                yield NightRecord(
                    night, RebalanceMode(plan.spec.configured or plan.spec.mode), RebalanceMode(plan.spec.mode), verdict
                )

    def all_due_for_grade(self, now: datetime) -> Iterator[RebalancePlan]:
        """Yield the plans of nights that have been lived through and are not graded, the oldest first."""
        for plan in self.plans:
            if plan.status.grade is not None or _night_of(plan) is None:
                continue
            end = plan.spec.created_at + timedelta(hours=plan.spec.predicted.horizon_hours)
            if end + _SETTLED <= now <= end + _GRADED_WITHIN:
                yield plan

    def unforeseen_on(self, today: date, calendar: Calendar) -> list[ServiceKey]:
        """Return the service of each pod that was to be moved on a local day because of the unforeseen."""
        return [
            ServiceKey(move.namespace, *move.service.split("/", 1))
            for plan in (*self.plans, *self.deleted)
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
    """Return the night that a plan was made for; None = it was made for none, or has the name of none."""
    found = _NIGHT.fullmatch(plan.name)
    if plan.spec.trigger is not Trigger.NIGHT or found is None:
        return None
    try:
        return date.fromisoformat(found[1])
    except ValueError:
        return None


def _is_same_service(one: MoveSpec, other: MoveSpec) -> bool:
    return (one.namespace, one.service) == (other.namespace, other.service)


def _occasion(plan: RebalancePlan, calendar: Calendar) -> tuple[Trigger, date | None]:
    """Return what has one budget: a night, or a day because of the unforeseen."""
    if plan.spec.trigger is Trigger.NIGHT:
        return Trigger.NIGHT, _night_of(plan)
    return Trigger.UNFORESEEN, calendar.day_and_slot(plan.spec.created_at)[0]


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
            if uid not in there and plan.spec.mode is PlanMode.ON and plan.spec.created_at > since
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
