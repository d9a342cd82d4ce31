"""The rebalancer at work over nights: one plan a night, graded the day after, on record whatever happens between."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from datetime import date, datetime
from typing import Any, TypeVar

import numpy as np
import pytest

from base.arrays import Floats
from base.local_hours import ChangeWindows
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, RESOURCES
from rebalancer.execution.plan_executor import Executor
from rebalancer.execution.plan_records import PlanRecords, RebalancePlan
from rebalancer.execution.plan_wire import PlanMode as Carried
from rebalancer.execution.plan_wire import PlanPhase
from rebalancer.plan_book import KeptPlans
from rebalancer.plan_maker import MadePlan, PlanMaker
from rebalancer.rebalance_settings import (
    BudgetOptions,
    RebalanceMode,
    RebalanceOptions,
    TrustOptions,
    UnforeseenOptions,
)
from rebalancer.rebalancing import Rebalancing
from testing.constants import with_constants
from tests.rebalancer.execution.small_cluster import SmallCluster
from tests.rebalancer.hot_cluster import NO_SECOND_THOUGHTS, NODES, hot_cluster, plan_sources, pods_on_the_first_node
from tests.scorer.live_cluster import at
from tests.scorer.scorer_at import LiveScorer

T = TypeVar("T")


class Session:
    """Runs requests at once."""

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(asyncio.run(coroutine))
        return done


class World:
    """A rebalancer over live tables and an API server in memory. `leads` may be changed.

    each : pods of each service on a hot node
    """

    def __init__(
        self,
        mode: RebalanceMode,
        hour: float = 3.0,
        *,
        each: int = 1,
        changes: ChangeWindows = ChangeWindows(),  # noqa: B008 - frozen
        **options: Any,
    ) -> None:
        self.changes = changes
        self.tested = hot_cluster(hour=hour, size=8.0 * each, pods=pods_on_the_first_node(each=each))
        self.api = SmallCluster()
        given = RebalanceOptions(mode=mode, budget=BudgetOptions(share=0.5), **options)
        self.options = with_constants(given, planning=NO_SECOND_THOUGHTS)
        self.leads = True
        self.start()

    def start(self) -> None:
        """Another process takes over."""
        tables = self.tested.scorer.tables
        kept = self.kept = KeptPlans(tables, self.options.cooldown)
        sources = plan_sources(cooling_until=kept.cooling_until, left=kept.nodes_left)
        self.maker = PlanMaker(tables, sources, self.options, HOT_SHARE)
        records = PlanRecords(self.api, why_foreign=kept.why_foreign)
        executor = Executor(self.api, records, self.options.execution, clock=self.tested.clock)
        self.rebalancing = Rebalancing(
            tables, self.maker, kept, Session(), records, executor, self.options, hot=HOT_SHARE,
            leads=lambda: self.leads, changes=self.changes, steady=self.tested.clock,
        )  # fmt: skip

    def at(self, hour: float, day: int = 0) -> None:
        self.tested.at(hour, day)
        self.api.now = at(hour, day)
        self.rebalancing.step()

    def plans(self) -> dict[str, RebalancePlan]:
        """Return those of the rebalancer."""
        records = PlanRecords(self.api, why_foreign=self.kept.why_foreign)
        return {plan.name: plan for plan in asyncio.run(records.list())}


class Lived:
    """A UsageSource: nodes and services use the same in each half hour."""

    def __init__(self, nodes: Mapping[str, float], service: float) -> None:
        self._nodes, self._service = nodes, service

    def node_history(self, names: list[str], since: datetime, until: datetime) -> Floats:
        return _flat(self._nodes[names[0]], since, until)

    def service_history(self, service: object, pods: list[str], since: datetime, until: datetime) -> Floats:
        return _flat(self._service, since, until)

    def pods(self, resource: str, names: object) -> dict[tuple[str, str], float]:
        return {}


def _flat(cores: float, since: datetime, until: datetime) -> Floats:
    usage = np.zeros((len(RESOURCES), round((until - since).total_seconds() / 1800)))
    usage[CPU] = cores
    return usage


def _lives(tested: LiveScorer, nodes: Mapping[str, float], service: float) -> None:
    tested.scorer.tables.usage_source = Lived(nodes, service)  # type: ignore[assignment]


def test_off_looks_and_writes_nothing() -> None:
    world = World(RebalanceMode.OFF)
    world.at(3.5)
    assert world.api.requests == []
    made = world.rebalancing.state.made
    assert made is not None and made.moves


def test_one_plan_a_night_however_often_it_looks_or_starts_anew() -> None:
    world = World(RebalanceMode.SHADOW)
    for hour in (3.5, 3.6, 4.0, 4.5):
        world.at(hour)
    world.start()
    world.at(5.0)
    assert list(world.plans()) == ["night-2026-05-19"]
    plan = world.plans()["night-2026-05-19"]
    assert plan.spec.mode is Carried.SHADOW and plan.spec.moves and plan.status.phase is PlanPhase.REPORTED
    assert not any("eviction" in request for request in world.api.requests)
    world.at(3.0, day=1)
    assert list(world.plans()) == ["night-2026-05-19", "night-2026-05-20"]


def test_a_plan_that_is_on_is_carried_out_and_ends_with_its_window() -> None:
    world = World(RebalanceMode.ON)
    world.at(3.5)
    plan = world.plans()["night-2026-05-19"]
    assert plan.spec.mode is Carried.ON and plan.spec.start_before is not None
    world.at(3.6)
    world.at(3.7)
    # Its pods are not on this API server: the record says so, and nothing else happens.
    states = {one.message for one in world.plans()["night-2026-05-19"].status.moves}
    assert states == {"the pod is gone"}


def test_a_night_is_graded_once_it_has_been_lived_through() -> None:
    world = World(RebalanceMode.SHADOW, each=2)
    world.at(3.5)
    _lives(world.tested, {"node-0": 15.9, "node-1": 4.0, "node-2": 4.0, "node-3": 4.0}, 12.0)
    world.at(20.0)
    assert world.plans()["night-2026-05-19"].status.grade is None, "its day is not over"
    world.at(5.0, day=1)
    grade = world.plans()["night-2026-05-19"].status.grade
    assert grade is not None and grade.verdict == "good" and grade.realised > 0 and grade.predicted > 0
    assert world.rebalancing.state.grade == grade


def test_after_two_bad_nights_it_only_plans_and_says_why() -> None:
    world = World(RebalanceMode.SHADOW, trust=with_constants(TrustOptions(), least_gain=0.1))
    world.options = world.options.replace(mode=RebalanceMode.ON)
    world.start()
    _lives(world.tested, dict.fromkeys(NODES, 0.1), 0.01)  # the evening was cool: nothing was gained
    for day in range(3):
        world.at(3.5, day)
        plan = world.plans()[f"night-{date(2026, 5, 19 + day).isoformat()}"]
        _as_if_carried_out(world, plan)
    world.at(5.0, day=3)
    grades = [plan.status.grade for plan in world.plans().values() if plan.status.grade is not None]
    assert [grade.verdict for grade in grades[:2]] == ["bad", "bad"]
    trust = world.rebalancing.state.trust
    assert trust.mode is RebalanceMode.SHADOW and "bad nights" in trust.because
    newest = list(world.plans().values())[-1]
    assert (newest.spec.configured, newest.spec.mode) == ("on", Carried.SHADOW)
    world.leads = False
    world.start()
    world.at(5.1, day=3)
    assert world.rebalancing.state.trust == trust, "another replica says the same"


def _as_if_carried_out(world: World, plan: RebalancePlan) -> None:
    """Write all moves of a plan as done."""
    ended = "2026-05-19T04:00:00Z"
    moves = [
        {"uid": move.uid, "state": "done", "since": ended, "evictedAt": ended, "endedAt": ended}
        for move in plan.spec.moves
    ]
    world.api.plans[plan.name].setdefault("status", {}).update({"phase": "Completed", "moves": moves})
    world.start()


def test_what_is_tried_every_ten_minutes_is_held_up_until_it_succeeds() -> None:
    world = World(RebalanceMode.SHADOW)
    world.at(3.5)
    _lives(world.tested, {"node-0": 7.9, "node-1": 4.0, "node-2": 4.0, "node-3": 4.0}, 12.0)
    world.api.forbidden = "night-2026-05-19/status"
    for minutes in (0, 1, 5):
        world.at(5.0 + minutes / 60, day=1)
        assert "not allowed" in world.rebalancing.state.trouble, minutes
    assert list(world.plans()) == ["night-2026-05-19", "night-2026-05-20"], "the grade keeps nothing else from its turn"
    world.api.forbidden = ""
    world.at(5.5, day=1)
    assert world.rebalancing.state.trouble == "" and world.rebalancing.state.grade is not None


def _foreign(name: str, *, created: str = "2026-05-19T01:00:00Z", **fields: Any) -> dict[str, Any]:
    """A plan that is on and that a person, or anybody with the right, has written."""
    uid = fields.pop("moves", "")
    move = {"namespace": "shop", "pod": uid, "uid": uid, "service": "Deployment/a", "from": "node-0", "to": "node-1"}
    spec = {"createdAt": created, "trigger": "night", "mode": "on", "moves": [move] if uid else [], **fields}
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "1"}, "spec": spec}


FOREIGN = [
    _foreign("night-tomorrow", moves="x"),
    _foreign("night-2099-01-01", created="2099-01-01T03:00:00Z", moves="x"),
    _foreign("night-2026-02-30"),
    _foreign("other", trigger="unforeseen", moves="x"),
    _foreign("night-2026-05-18", predicted={"horizonHours": 1e300}),
    _foreign("night-2026-05-17", created="2026-05-17T01:00:00Z", configured="maybe"),
    {"metadata": {"name": "empty"}},
    _foreign("night-2026-05-16", created="2026-05-16T01:00:00Z") | {"status": {"moves": 7}},
]


def test_foreign_plans_are_skipped_and_reported_and_wedge_nothing() -> None:
    world = World(RebalanceMode.ON)
    names = [one["metadata"]["name"] for one in FOREIGN]
    world.api.plans |= dict(zip(names, FOREIGN, strict=True))
    for hour in (3.5, 3.6, 3.7):
        world.at(hour)
    state = world.rebalancing.state
    assert list(world.plans()) == ["night-2026-05-19"]
    assert state.foreign == len(FOREIGN) and names[0] in state.trouble, state.trouble
    touched = [
        one for one in world.api.requests if "/eviction" in one or any(f"{name}/status" in one for name in names)
    ]
    assert touched == []
    for name in names:
        del world.api.plans[name]
    world.at(3.8)
    assert (world.rebalancing.state.foreign, world.rebalancing.state.trouble) == (0, "")


def test_a_foreign_plan_with_the_name_of_tonight_takes_no_night_away() -> None:
    world = World(RebalanceMode.SHADOW)
    world.api.plans["night-2026-05-19"] = _foreign("night-2026-05-19", startBefore="2099-01-01T00:00:00Z")
    for hour in (3.5, 3.6, 4.0):
        world.at(hour)
    made = [name for name, plan in world.plans().items() if plan.spec.moves]
    assert made == ["night-2026-05-19-2"] and "night-2026-05-19:" in world.rebalancing.state.trouble


def test_a_plan_that_is_being_deleted_and_is_kept_by_a_finalizer_is_nobodys() -> None:
    world = World(RebalanceMode.SHADOW)
    world.at(3.5)
    world.api.plans["night-2026-05-19"]["metadata"]["deletionTimestamp"] = "2026-05-19T01:40:00Z"
    world.at(3.7)
    world.at(3.8)
    assert "being deleted" in world.rebalancing.state.trouble
    assert "night-2026-05-19-2" in world.api.plans


def test_who_deletes_the_plan_of_tonight_gets_no_second_one() -> None:
    """Failed before: another plan was made at once, with the whole budget."""
    world = World(RebalanceMode.ON)
    world.at(3.5)
    plan = world.api.plans.pop("night-2026-05-19")
    for hour in (3.6, 3.7, 4.0):
        world.at(hour)
    assert world.plans() == {}
    world.api.plans["night-2026-05-19"] = plan | {
        "metadata": plan["metadata"] | {"deletionTimestamp": "2026-05-19T01:40:00Z"}
    }
    world.start()  # its finalizer says so to another process, too
    world.at(4.2)
    assert list(world.api.plans) == ["night-2026-05-19"]
    world.at(3.0, day=1)
    assert "night-2026-05-20" in world.api.plans


def test_what_was_not_foreseen_is_reported_and_all_is_read_again() -> None:
    world = World(RebalanceMode.SHADOW)
    plan_night = world.rebalancing._plan_night

    def broken(now: datetime, trust: object) -> None:
        raise ZeroDivisionError("a bug")

    world.rebalancing._plan_night = broken  # type: ignore[method-assign]
    world.at(3.5)
    assert "ZeroDivisionError: a bug" in world.rebalancing.state.trouble
    world.rebalancing._plan_night = plan_night  # type: ignore[method-assign]
    world.at(3.6)
    world.at(3.7)
    assert world.rebalancing.state.trouble == "" and list(world.plans()) == ["night-2026-05-19"]


def test_without_a_forecast_it_looks_again_soon() -> None:
    world = World(RebalanceMode.OFF)
    answers: list[MadePlan | None] = [None, None]
    for_tonight = world.maker.for_tonight
    world.maker.for_tonight = lambda: answers.pop() if answers else for_tonight()  # type: ignore[method-assign]
    for hour, is_made in ((3.5, False), (3.501, False), (3.502, False), (3.504, True)):
        world.at(hour)
        assert (world.rebalancing.state.made is not None) == is_made, hour
    assert answers == []


def test_a_node_above_its_bound_for_several_readings_gets_a_plan_at_once() -> None:
    world = World(RebalanceMode.ON, hour=19.0, each=2, unforeseen=with_constants(UnforeseenOptions(), readings=3))
    for number in range(6):
        world.tested.measure({"node-0": 60.0, "node-1": 4.0, "node-2": 4.0, "node-3": 4.0})
        world.tested.scorer.tables.refresh_overview()
        world.at(19.0 + number / 60)
        if number < 2:
            assert world.plans() == {}
    names = list(world.plans())
    assert len(names) == 1 and names[0].startswith("unforeseen-2026-05-19-19")
    plan = world.plans()[names[0]]
    assert {move.source for move in plan.spec.moves} == {"node-0"} and len(plan.spec.moves) <= 3


@pytest.mark.parametrize(("window", "ends"), [("20:00-21:00", None), ("19:00-19:10", 10), ("19:00-21:00", 31)])
def test_change_windows_hold_for_the_unforeseen_too(window: str, ends: int | None) -> None:
    quick = with_constants(UnforeseenOptions(), readings=1)
    world = World(RebalanceMode.ON, hour=19.0, each=2, changes=ChangeWindows.of((window,)), unforeseen=quick)
    world.tested.measure({"node-0": 60.0, "node-1": 4.0, "node-2": 4.0, "node-3": 4.0})
    world.tested.scorer.tables.refresh_overview()
    world.at(19.0 + 1 / 60)
    plans = list(world.plans().values())
    assert len(plans) == (ends is not None)
    if ends is not None:
        before = plans[0].spec.start_before
        assert before is not None and before.astimezone(world.tested.scorer.tables.now().tzinfo).minute == ends


def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    world = World(RebalanceMode.ON)
    world.leads = False
    world.at(3.5)
    assert {request.split()[0] for request in world.api.requests} == {"GET"}
    assert world.rebalancing.state.made is not None and not world.rebalancing.state.leads


def test_in_the_evening_nothing_is_planned() -> None:
    world = World(RebalanceMode.ON, hour=18.0, unforeseen=UnforeseenOptions(enabled=False))
    for hour in (18.0, 19.5, 21.0):
        world.at(hour)
    assert world.plans() == {}


def test_an_api_server_that_refuses_holds_it_up_and_is_reported() -> None:
    world = World(RebalanceMode.ON)
    world.api.fault = lambda number, moment: True
    world.at(3.5)
    assert world.rebalancing.state.trouble
    world.api.fault = lambda number, moment: False
    world.at(3.7)
    world.at(3.8)
    assert world.rebalancing.state.trouble == "" and list(world.plans()) == ["night-2026-05-19"]
