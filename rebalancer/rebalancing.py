"""The rebalancer at work: plans once a night, carries the plan out, grades it the day after, and minds its grades.

    every look:  tables --PlanMaker--> what would help now         (for the page, in every mode)
    leader:      in a window, no plan of this night --> RebalancePlan, `on` or `shadow` by the grades so far
                 plans that are `on` --Executor--> moves, step by step
                 a night that has been lived through --> its grade
                 a node above its bound for several readings --> a small plan at once

All that must outlive this process is in the RebalancePlans. plan_maker, timing/, night_grades and execution/ decide;
this file says when each is asked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar

from base.errors import ForecastError, InputError
from base.local_hours import ChangeWindows
from cluster.degradation import Level
from cluster.live_tables import LiveTables
from kube.failure_notice import Troubles
from kube.session.session_calls import SubmitsCoroutines, call
from rebalancer.execution.plan_executor import Executor
from rebalancer.execution.plan_records import PlanRecords, RebalancePlan
from rebalancer.execution.plan_wire import PlanGrade, PlanSpec, Trigger, clipped, moment
from rebalancer.measured_gain import measured_grade
from rebalancer.night_grades import Trust, mode_from
from rebalancer.plan_book import MOST_NAMES, KeptPlans, night_name, unforeseen_name
from rebalancer.plan_forms import spec_of
from rebalancer.plan_maker import MadePlan, OverloadRelief, PlanMaker
from rebalancer.rebalance_settings import RebalanceMode, RebalanceOptions
from rebalancer.timing.unforeseen import UnforeseenState, moves_left, step
from rebalancer.timing.windows import MoveWindow

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_SECONDS: Final = 600.0
_NO_FORECAST_SECONDS: Final = 5.0
_READING_SECONDS: Final = 30.0
_PLANS_SECONDS: Final = 60.0
"""Between two readings of all plans: what others write or delete shows."""

_GRADE_SECONDS: Final = 600.0
_SETTLING_SECONDS: Final = 600.0
"""Between two plans because of the unforeseen: measurements have to see what the first one changed."""

_OF_THE_LEADER: Final = ("grade", "moves", "night", "unforeseen")
"""Parts of the work that a replica which does not lead leaves to the one that does."""

_AT_ONCE: Final = timedelta(minutes=30)
"""Moves because of the unforeseen that have not begun within this time are left out."""


@dataclass(frozen=True, slots=True)
class RebalancingState:
    """For metrics and the page.

    made    : what would help now; None = not looked yet, or no forecast
    trust   : what may be done now
    active  : plans under way
    grade   : of the last night that has one
    foreign : RebalancePlans that are left out: not ours, or not to be read
    trouble : what could not be done; '' = nothing went wrong
    """

    trust: Trust
    made: MadePlan | None = None
    leads: bool = False
    active: int = 0
    grade: PlanGrade | None = None
    overloaded: int = 0
    foreign: int = 0
    trouble: str = ""


class Rebalancing:
    """`step` is called again and again by one thread; `state` may be read by any."""

    def __init__(
        self,
        tables: LiveTables,
        maker: PlanMaker,
        kept: KeptPlans,
        session: SubmitsCoroutines,
        records: PlanRecords,
        executor: Executor,
        options: RebalanceOptions,
        *,
        hot: float,
        leads: Callable[[], bool],
        changes: ChangeWindows,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        hot     : share of its capacity above which a node is hot
        changes : when pods may move
        steady  : seconds that pass evenly
        """
        self._tables, self._maker, self._kept, self._session = tables, maker, kept, session
        self._records, self._executor, self._options = records, executor, options
        self._hot, self._leads, self._changes, self._steady = hot, leads, changes, steady
        self._is_leading = self._are_plans_read = False
        self._unforeseen = UnforeseenState.empty()
        self._due: dict[str, float] = {}
        self._lock = threading.Lock()
        self._state = RebalancingState(trust=Trust(options.mode))
        self._troubles = Troubles(logger, "rebalancing")

    @property
    def state(self) -> RebalancingState:
        """Return how it stands."""
        with self._lock:
            return self._state

    def step(self) -> None:
        """Do what is due. A part that fails keeps no other from its turn."""
        leads = self._leads()
        if self._is_due("look", _LOOK_SECONDS):
            self._troubles.attempt("look", self._look)
        try:
            if self._options.mode is RebalanceMode.OFF:
                pass
            elif leads:
                self._lead()
            else:
                self._follow()
        except Exception as error:
            # Not foreseen: what is known of the plans may be wrong, and must not stay so.
            logger.exception("a step of the rebalancer failed; the plans are read again")
            self._are_plans_read = False
            self._troubles.note("step", f"{type(error).__name__}: {error}"[:500])
        else:
            self._troubles.note("step", "")
        self._note(trouble=str(self._troubles), leads=leads)

    def _look(self) -> None:
        made = self._maker.for_tonight()
        if made is None:  # the first model is still being loaded, or there is none
            self._due["look"] = self._steady() + _NO_FORECAST_SECONDS
        self._note(made=made)

    def _follow(self) -> None:
        """Read what the leader has recorded, so that this replica says the same of the mode and of past nights."""
        self._is_leading = False
        for part in _OF_THE_LEADER:
            self._troubles.note(part, "")
        if self._is_due("follow", _PLANS_SECONDS):
            self._troubles.attempt("plans", self._read_plans)
            self._note(trust=self._trust(), active=0, overloaded=0)

    # As the leader

    def _lead(self) -> None:
        if not self._is_leading:
            self._executor.reset()
            self._are_plans_read = False
        if self._is_due("plans", _PLANS_SECONDS) or not self._are_plans_read:
            self._are_plans_read = self._troubles.attempt("plans", self._read_plans)
            for plan in self._kept.book.plans:
                self._executor.adopt(plan)  # the answer to its creation may have been lost
        self._is_leading |= self._are_plans_read
        if not self._is_leading:
            return
        now = self._tables.now()
        if self._are_plans_read and self._is_due("grade", _GRADE_SECONDS):
            self._troubles.attempt("grade", lambda: self._grade(now))
        trust = self._trust()
        result = self._wait(self._executor.step(may_start=trust.mode is RebalanceMode.ON and self._has_forecast()))
        self._troubles.note("moves", result.trouble)
        self._note(trust=trust, active=len(result.active))
        if not self._are_plans_read:
            return  # a plan that was written and is not known would be made again
        self._troubles.attempt("night", lambda: self._plan_night(now, trust))
        if self._is_due("reading", _READING_SECONDS):
            self._relieve(now, trust, n_active=len(result.active))

    def _trust(self) -> Trust:
        return mode_from(self._kept.book.nights(), self._options.mode, self._options.trust)

    def _plan_night(self, now: datetime, trust: Trust) -> None:
        made = self.state.made
        window = None if made is None else _window_of(made, now)
        if window is None or not self._has_forecast():
            return
        night = window.end.astimezone(self._kept.calendar().zone).date()
        if self._kept.book.is_planned(night, now):
            return
        name = self._name_of_night(night)
        made = self._maker.for_tonight()
        if made is None:
            return
        self._note(made=made)
        spec = spec_of(made, Trigger.NIGHT, configured=self._options.mode, mode=trust.mode, start_before=window.end)
        self._record(name, spec)
        self._wait(self._records.prune(self._options.execution.keep_plans))
        self._read_plans()
        logger.info("planned the night", extra={"plan": name, "moves": len(spec.moves), "mode": trust.mode.value})

    def _name_of_night(self, night: date) -> str:
        """Return the name of its plan: the first that no foreign plan has. Raises InputError."""
        for number in range(1, MOST_NAMES + 1):
            name = night_name(night, number)
            if name not in self._records.left_out:
                return name
        raise InputError(f"RebalancePlans that are not ours have all names of the night {night}: delete them")

    def _grade(self, now: datetime) -> None:
        """Grade all nights that are due. One that cannot be graded keeps no other from its grade."""
        failure: ForecastError | None = None
        for plan in self._kept.book.all_due_for_grade(now.astimezone(UTC)):
            try:
                self._grade_one(plan, now)
            except ForecastError as error:
                failure = error
        if failure is not None:
            raise failure

    def _grade_one(self, plan: RebalancePlan, now: datetime) -> None:
        found = measured_grade(plan, self._tables, self._options.trust, self._hot)
        grade = PlanGrade(
            predicted=found.predicted_gain,
            realised=found.realised_gain,
            at=moment(now.timestamp()),
            verdict=found.verdict.value,
            prevented=found.prevented,
            newly_hot=found.newly_hot,
            message=clipped(found.because),
        )
        self._wait(self._records.write_grade(plan, grade))
        self._read_plans()
        trust = self._trust()
        self._note(trust=trust, grade=grade)
        fields = {"plan": plan.name, "verdict": grade.verdict, "because": grade.message}
        logger.info("graded a night", extra=fields)
        if trust.stood_down:
            logger.warning("the rebalancer only plans now", extra={"because": trust.because})

    def _relieve(self, now: datetime, trust: Trust, *, n_active: int) -> None:
        options = self._options.unforeseen
        if not options.enabled:
            return
        self._unforeseen = self._read_usage()
        nodes = self._unforeseen.overloaded
        self._note(overloaded=len(nodes))
        if not nodes:
            self._troubles.note("unforeseen", "")
        if not nodes or n_active or not self._has_forecast() or not self._is_due("unforeseen", _SETTLING_SECONDS):
            return
        self._troubles.attempt("unforeseen", lambda: self._plan_unforeseen(now, trust, frozenset(nodes)))

    def _plan_unforeseen(self, now: datetime, trust: Trust, nodes: frozenset[str]) -> None:
        options = self._options.unforeseen
        calendar = self._kept.calendar()
        if closed := self._changes.closed(now, calendar.zone):
            logger.info("overloaded nodes are not relieved", extra={"nodes": sorted(nodes), "because": closed})
            return
        moved = self._kept.book.unforeseen_on(calendar.day_and_slot(now)[0], calendar)
        total = options.per_day - len(moved)
        if total <= 0:
            return
        made = self._maker.at_once(OverloadRelief(nodes, total, lambda service: moves_left(moved, service, options)))
        if made is None or not made.moves:
            return
        until = self._changes.open_until(now, now + _AT_ONCE, calendar.zone)
        spec = spec_of(made, Trigger.UNFORESEEN, configured=self._options.mode, mode=trust.mode, start_before=until)
        self._record(unforeseen_name(now.astimezone(UTC)), spec)
        self._read_plans()

    def _read_usage(self) -> UnforeseenState:
        """Compare what is measured now with the bounds of the forecast."""
        overview = self._tables.overview
        if overview is None:
            return UnforeseenState.empty()
        with self._tables.reading() as cluster:
            rows = [cluster.state.row_of.get(name, -1) for name in overview.names]
            there = [position for position, row in enumerate(rows) if row >= 0]
            measured = cluster.measured_usage()[[rows[position] for position in there]]
        names = [overview.names[position] for position in there]
        # Before what is measured now corrects it: a bound that follows the usage is never passed.
        bound, capacity = overview.model_usage[there, :, 1, 0], overview.capacity[there]
        return step(self._unforeseen, names, measured, bound, capacity, self._options.unforeseen, self._hot)

    # Inside

    def _record(self, name: str, spec: PlanSpec) -> None:
        self._are_plans_read = False  # until they are, it is not known what was written
        plan: RebalancePlan = self._wait(self._records.create(name, spec))
        self._executor.adopt(plan)

    def _read_plans(self) -> None:
        plans = self._wait(self._records.list())
        self._kept.replace(plans, self._records.going)
        self._are_plans_read = True
        left_out = self._records.left_out
        first = next((f"{name or 'without a name'}: {why}" for name, why in left_out.items()), "")
        self._troubles.note(
            "foreign", f"{len(left_out)} RebalancePlans are left out, delete them: {first}" if left_out else ""
        )
        self._note(foreign=len(left_out))
        graded = [plan.status.grade for plan in plans if plan.status.grade is not None]
        self._note(grade=graded[-1] if graded else None)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return call(self._session, coroutine, _PLANS_SECONDS, "reading or writing plans")

    def _has_forecast(self) -> bool:
        with self._tables.reading():
            return self._tables.level()[0] < Level.REQUESTS

    def _is_due(self, what: str, seconds: float) -> bool:
        now = self._steady()
        if now < self._due.get(what, float("-inf")):
            return False
        self._due[what] = now + seconds
        return True

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)


def _window_of(made: MadePlan, now: datetime) -> MoveWindow | None:
    """Return the window that is open now."""
    return next((window for window in made.windows.windows if now in window), None)
