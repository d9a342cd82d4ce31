"""What past plans say: nights, moves that rest, what is due."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from forecast.calendar import Calendar
from forecast.errors import InputError
from forecast.service_key import ServiceKey
from placement.reserved_targets.move_state import MoveState
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.wire import Grade, Mode, MoveSpec, MoveStatus, PlanSpec, PlanStatus, Predicted, Trigger
from rebalancer.options import Mode as ConfiguredMode
from rebalancer.plan_book import PlanBook, night_name
from rebalancer.planning.cooldown import CooldownOptions
from rebalancer.trust.grade import Verdict

BERLIN = Calendar("Europe/Berlin")
OPTIONS = CooldownOptions(nights=2, no_return_days=14)


def _plan(
    night: date, moved: dict[str, str] | None = None, *, name: str = "", trigger: Trigger = Trigger.NIGHT,
    grade: Grade | None = None, configured: str = "on", mode: Mode = Mode.ON,
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
    assert book.due_for_grade(end) is None
    assert book.due_for_grade(end + timedelta(hours=1)) == plan
    assert book.due_for_grade(end + timedelta(days=4)) is None
    graded = _plan(date(2026, 3, 1), grade=Grade(predicted=1.0, realised=1.0, at=end, verdict="good"))
    assert PlanBook.of([graded], BERLIN).due_for_grade(end + timedelta(hours=1)) is None


def test_nights_are_read_with_what_was_set_and_what_was_done() -> None:
    grade = Grade(predicted=5.0, realised=-1.0, at=datetime(2026, 3, 2, tzinfo=UTC), verdict="bad")
    unforeseen = _plan(date(2026, 3, 1), name="unforeseen-2026-03-01-190000", trigger=Trigger.UNFORESEEN)
    shadow = _plan(date(2026, 3, 2), configured="on", mode=Mode.SHADOW)
    first, second = PlanBook.of([_plan(date(2026, 3, 1), grade=grade), unforeseen, shadow], BERLIN).nights()
    assert (first.night, first.verdict, first.stood_down) == (date(2026, 3, 1), Verdict.BAD, False)
    assert (second.configured, second.mode, second.stood_down) == (ConfiguredMode.ON, ConfiguredMode.SHADOW, True)


def test_moves_because_of_the_unforeseen_count_on_their_local_day() -> None:
    plan = _plan(date(2026, 3, 1), {"a": "b"}, name="unforeseen-2026-03-01-020000", trigger=Trigger.UNFORESEEN)
    book = PlanBook.of([plan, _plan(date(2026, 3, 1), {"c": "d"})], BERLIN)
    assert book.unforeseen_on(date(2026, 3, 1), BERLIN) == [ServiceKey("shop", "Deployment", "cart")]
    assert book.unforeseen_on(date(2026, 3, 2), BERLIN) == []


def test_a_plan_of_no_night_is_named_in_the_error() -> None:
    with pytest.raises(InputError, match="night-soon"):
        list(PlanBook.of([_plan(date(2026, 3, 1), name="night-soon")], BERLIN).nights())
