"""What past plans say: nights, moves that rest, what is due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import msgspec
import pytest

from forecast.calendar import Calendar
from forecast.service_key import ServiceKey
from placement.reservations.watched_plans import MoveState
from rebalancer.cooldown import CooldownOptions
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import (
    MoveSpec,
    MoveStatus,
    PlanGrade,
    PlanMode,
    PlanSpec,
    PlanStatus,
    Predicted,
    Trigger,
)
from rebalancer.night_grades import Verdict
from rebalancer.plan_book import PlanBook, night_name, unforeseen_name, why_foreign
from rebalancer.rebalance_settings import BudgetOptions, RebalanceMode, RebalanceOptions

BERLIN = Calendar("Europe/Berlin")
OPTIONS = CooldownOptions(nights=2, no_return_days=14)


def _plan(
    night: date, moved: dict[str, str] | None = None, *, name: str = "", trigger: Trigger = Trigger.NIGHT,
    grade: PlanGrade | None = None, configured: Literal["", "off", "shadow", "on"] = "on", mode: PlanMode = PlanMode.ON,
) -> RebalancePlan:  # fmt: skip
    """A plan at 02:00 UTC. moved: UID of the pod -> UID of its replacement; '' = it was not evicted."""
    at = datetime(night.year, night.month, night.day, 2, tzinfo=UTC)
    moves = tuple(
        MoveSpec(namespace="shop", pod=uid, uid=uid, service="Deployment/cart", source=f"from-{uid}", to="b")
        for uid in moved or {}
    )
    states = tuple(
        MoveStatus(uid=uid, state=MoveState.DONE, since=at, evicted_at=at, replacement_uid=new)
        for uid, new in (moved or {}).items()
        if new
    )
    spec = PlanSpec(
        created_at=at, trigger=trigger, mode=mode, configured=configured, moves=moves,
        predicted=Predicted(horizon_hours=24.0),
    )  # fmt: skip
    return RebalancePlan(name or night_name(night), "uid", "1", at, spec, PlanStatus(moves=states, grade=grade))


def test_a_moved_pod_rests_under_the_name_of_its_replacement_and_each_move_doubles_it() -> None:
    first, second = date(2026, 3, 1), date(2026, 3, 5)
    book = PlanBook.of([_plan(first, {"a": "b", "x": ""}), _plan(second, {"b": "c"})], BERLIN)
    assert book.cooling_until("a", BERLIN, OPTIONS) is book.cooling_until("x", BERLIN, OPTIONS) is None
    assert book.cooling_until("b", BERLIN, OPTIONS) == BERLIN.midnight(date(2026, 3, 4)).timestamp()
    assert book.cooling_until("c", BERLIN, OPTIONS) == BERLIN.midnight(date(2026, 3, 10)).timestamp()
    assert book.nodes_left("c", date(2026, 3, 6), OPTIONS) == {"from-a", "from-b"}
    assert book.nodes_left("c", date(2026, 3, 16), OPTIONS) == {"from-b"}


def test_a_night_is_due_for_its_grade_an_hour_after_its_day_and_for_three_days() -> None:
    plan = _plan(date(2026, 3, 1))
    book = PlanBook.of([plan], BERLIN)
    end = plan.spec.created_at + timedelta(hours=24)
    assert list(book.all_due_for_grade(end)) == []
    assert list(book.all_due_for_grade(end + timedelta(hours=1))) == [plan]
    assert list(book.all_due_for_grade(end + timedelta(days=4))) == []
    graded = _plan(date(2026, 3, 1), grade=PlanGrade(predicted=1.0, realised=1.0, at=end, verdict="good"))
    assert list(PlanBook.of([graded], BERLIN).all_due_for_grade(end + timedelta(hours=1))) == []


def test_nights_are_read_with_what_was_set_and_what_was_done() -> None:
    grade = PlanGrade(predicted=5.0, realised=-1.0, at=datetime(2026, 3, 2, tzinfo=UTC), verdict="bad")
    unforeseen = _plan(date(2026, 3, 1), name="unforeseen-2026-03-01-190000", trigger=Trigger.UNFORESEEN)
    shadow = _plan(date(2026, 3, 2), configured="on", mode=PlanMode.SHADOW)
    first, second = PlanBook.of([_plan(date(2026, 3, 1), grade=grade), unforeseen, shadow], BERLIN).nights()
    assert (first.night, first.verdict, first.stood_down) == (date(2026, 3, 1), Verdict.BAD, False)
    assert (second.configured, second.mode, second.stood_down) == (RebalanceMode.ON, RebalanceMode.SHADOW, True)


def test_moves_because_of_the_unforeseen_count_on_their_local_day() -> None:
    plan = _plan(date(2026, 3, 1), {"a": "b"}, name="unforeseen-2026-03-01-020000", trigger=Trigger.UNFORESEEN)
    book = PlanBook.of([plan, _plan(date(2026, 3, 1), {"c": "d"})], BERLIN)
    assert book.unforeseen_on(date(2026, 3, 1), BERLIN) == [ServiceKey("shop", "Deployment", "cart")]
    assert book.unforeseen_on(date(2026, 3, 2), BERLIN) == []


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_AGO, FAR = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)


def _changed(spec: dict[str, Any] | None = None, **fields: Any) -> RebalancePlan:
    plan = _plan(date(2026, 3, 1), {"a": "b"})
    return replace(plan, spec=msgspec.structs.replace(plan.spec, **(spec or {})), **fields)


def _with_status(**times: datetime) -> RebalancePlan:
    status = msgspec.structs.replace(MoveStatus("a", MoveState.EVICTED, NOW), **times)
    return _changed(status=PlanStatus(moves=(status,)))


FOREIGN = {
    "tomorrow": _changed(name="night-tomorrow"),
    "zeros": _changed(name="night-0000-00-00"),
    "no such day": _changed(name="night-2026-02-30"),
    "another notation": _changed(name="night-20260301"),
    "a night of later": _changed(name="night-2099-01-01"),
    "a night of before": _changed(name="night-2020-01-01"),
    "made later": _changed({"created_at": datetime(2099, 1, 1, tzinfo=UTC)}, name="night-2099-01-01"),
    "made at the end of time": _changed({"created_at": FAR}),
    "made at its beginning": _changed({"created_at": LONG_AGO}),
    "begins whenever": _changed({"start_before": FAR}),
    "unforeseen without a time": _changed({"trigger": Trigger.UNFORESEEN}, name="unforeseen-soon"),
    "unforeseen at another time": _changed({"trigger": Trigger.UNFORESEEN}, name="unforeseen-2026-02-01-020000"),
    "a night that is unforeseen": _changed({"trigger": Trigger.UNFORESEEN}),
    "a pod twice": _changed({"moves": _plan(date(2026, 3, 1), {"a": "b"}).spec.moves * 2}),
    "moved before time": _with_status(evicted_at=LONG_AGO),
    "moved after time": _with_status(since=FAR),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_plan_that_cannot_be_ours_is_known_by_what_it_says(what: str) -> None:
    assert why_foreign(FOREIGN[what], NOW, BERLIN)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_plans_of_ours_are_no_foreign_ones_in_any_time_zone(zone: str) -> None:
    calendar = Calendar(zone)
    at = _plan(date(2026, 3, 1)).spec.created_at
    for plan in (
        _plan(date(2026, 3, 1), {"a": "b"}),
        replace(_plan(date(2026, 3, 1)), name=night_name(date(2026, 3, 2), 2)),
        _plan(date(2026, 3, 1), name=unforeseen_name(at), trigger=Trigger.UNFORESEEN),
    ):
        assert why_foreign(plan, at, calendar) == ""


def test_plans_of_one_night_have_one_budget_whoever_wrote_them() -> None:
    ours = _plan(date(2026, 3, 1), {f"p{n}": "" for n in range(2)})
    other = replace(_plan(date(2026, 3, 1), {f"q{n}": "" for n in range(3)}), name="night-2026-03-01-2", created=NOW)
    book = PlanBook.of([other, ours], BERLIN)

    def allowed(**budget: int) -> list[str]:
        options = RebalanceOptions(budget=BudgetOptions(**budget))
        moves = [*ours.spec.moves, *other.spec.moves]
        return [move.uid for move in moves if not book.beyond_budget(move, options, BERLIN)]

    assert allowed(per_service=9, per_namespace=9) == ["p0", "p1", "q0", "q1", "q2"]
    assert allowed(per_service=9, per_namespace=3) == ["p0", "p1", "q0"]
    assert allowed(per_service=1) == ["p0"]
    assert allowed(most=4, per_service=9) == ["p0", "p1", "q0", "q1"]
    unknown = msgspec.structs.replace(ours.spec.moves[0], uid="else")
    assert book.beyond_budget(unknown, RebalanceOptions(), BERLIN)


def test_a_night_has_one_plan_whatever_the_date_on_which_its_window_ends() -> None:
    """Failed before: a window that ended at half past eleven, and one that ended at one, were two nights' budgets."""
    before_midnight = _plan(date(2026, 3, 1), {"p": ""})  # at 02:00 UTC
    book = PlanBook.of([before_midnight], BERLIN)
    made = before_midnight.spec.created_at
    assert book.is_planned(date(2026, 3, 1), made + timedelta(days=3))
    assert book.is_planned(date(2026, 3, 2), made + timedelta(hours=2))
    assert not book.is_planned(date(2026, 3, 2), made + timedelta(hours=22))


def test_what_a_deleted_plan_has_used_of_a_budget_stays_used() -> None:
    gone = _plan(date(2026, 3, 1), {f"p{n}": "" for n in range(2)})
    ours = replace(_plan(date(2026, 3, 1), {"q": ""}), name="night-2026-03-01-2", uid="other", created=NOW)
    (move,) = ours.spec.moves
    assert not PlanBook.of([ours], BERLIN).beyond_budget(move, RebalanceOptions(), BERLIN)
    book = PlanBook.of([ours], BERLIN, deleted=[gone])
    assert book.beyond_budget(move, RebalanceOptions(), BERLIN)
    assert book.is_planned(date(2026, 3, 1), NOW + timedelta(days=1)) and book.find(gone.name) is None


def test_half_of_a_service_is_that_of_the_replicas_it_has_now() -> None:
    """Failed before: of a Deployment that was scaled down from ten to two after the plan both pods were moved."""
    plan = _plan(date(2026, 3, 1), {"p": "", "q": ""})
    book, (first, second) = PlanBook.of([plan], BERLIN), plan.spec.moves
    for replicas, is_over in ((None, False), (10, False), (2, True)):
        assert not book.beyond_budget(first, RebalanceOptions(), BERLIN, replicas=replicas)
        assert bool(book.beyond_budget(second, RebalanceOptions(), BERLIN, replicas=replicas)) == is_over


def test_a_service_has_one_budget_for_the_night_and_for_the_unforeseen() -> None:
    at_once = _plan(date(2026, 3, 1), {"a": "b"}, name="unforeseen-2026-03-01-010000", trigger=Trigger.UNFORESEEN)
    earlier = at_once.spec.created_at - timedelta(hours=1)
    at_once = replace(at_once, created=earlier, spec=msgspec.structs.replace(at_once.spec, created_at=earlier))
    plan = _plan(date(2026, 3, 1), {"p": "", "q": ""})
    book = PlanBook.of([at_once, plan], BERLIN)
    allowed = [move.uid for move in plan.spec.moves if not book.beyond_budget(move, RebalanceOptions(), BERLIN)]
    assert allowed == ["p"]


def test_a_plan_of_no_night_is_no_night_and_is_not_graded() -> None:
    book = PlanBook.of([_plan(date(2026, 3, 1), name="night-soon")], BERLIN)
    assert list(book.nights()) == [] and list(book.all_due_for_grade(datetime(2026, 3, 2, 4, tzinfo=UTC))) == []
