"""When each hand is asked, and what is said while something is missing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from prometheus_client.core import GaugeMetricFamily, Metric

from autoscaling.autoscale_settings import AutoscaleOptions
from autoscaling.autoscaler import Autoscaler, AutoscalingCollector
from autoscaling.replicas.used_now import PodsNow, used_by_service
from autoscaling.services_ahead import ServicesAhead
from base.errors import ForecastError
from base.excluded import ExcludedOptions
from cluster.live_tables import LiveTables
from cluster.state_source import StateSource
from forecast.resources import CPU, RESOURCES
from testing.waiting import eventually
from tests.autoscaling.live_services import live_tables
from tests.scorer.live_cluster import at, service
from tests.scorer.scorer_at import LiveScorer


class Session:
    """Runs what is submitted at once."""

    def submit(self, work: Coroutine[Any, Any, None], /) -> Future[None]:
        done: Future[None] = Future()
        try:
            done.set_result(asyncio.run(work))
        except Exception as error:
            done.set_exception(error)
        return done


class Noting:
    """A hand that notes what it is asked."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails, self.asked = name, fails, list[str]()

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        self.asked.append("act")
        if self.fails:
            raise ForecastError(f"{self.name}: refused")

    async def retreat(self) -> None:
        self.asked.append("retreat")

    def metrics(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(f"asked_{self.name}", "Turns.", value=len(self.asked))


class Broken(Noting):
    """A hand with a bug."""

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        raise KeyError("items")

    async def retreat(self) -> None:
        raise KeyError("items")


class Measured:
    """Half a core for each pod, or an error."""

    def __init__(self) -> None:
        self.fails = False

    def pods(self) -> PodsNow:
        if self.fails:
            raise ForecastError("no answer")
        usage = np.full(len(RESOURCES), np.nan)
        usage[CPU] = 0.5
        return PodsNow({("shop", name): usage for name in ("p0", "p1")}, at(12.0))


class World:
    def __init__(self, tables: LiveTables, *hands: Noting) -> None:
        self.hands, self.leads, self.steady, self.pods = hands, True, 0.0, Measured()
        self.autoscaler = Autoscaler(
            tables,
            self.pods,
            Session(),
            hands,
            AutoscaleOptions(),
            leads=lambda: self.leads,
            excluded=ExcludedOptions(),
            steady=lambda: self.steady,
        )

    def step(self, seconds: float = 15.0) -> None:
        self.autoscaler.step()
        self.steady += seconds


def test_the_leader_acts_now_and_then_and_takes_back_at_its_end() -> None:
    hand = Noting("buffers")
    world = World(live_tables(), hand)
    for _ in range(5):
        world.step()
    assert hand.asked == ["act", "act"]
    world.autoscaler.end()
    assert hand.asked[-1] == "retreat"


def test_a_replica_that_does_not_lead_writes_nothing_and_says_all() -> None:
    hand = Noting("buffers")
    world = World(live_tables(), hand)
    world.leads = False
    world.step()
    assert hand.asked == [] and len(list(world.autoscaler.loads())) == 1
    world.leads = True
    world.step()
    assert hand.asked == ["act"], "a new leader acts at once"
    world.leads = False
    world.autoscaler.end()
    assert hand.asked == ["act"]


def test_a_hand_that_fails_keeps_no_other_from_its_turn() -> None:
    bad, good = Noting("buffers", fails=True), Noting("guard")
    world = World(live_tables(), bad, good)
    world.step()
    state = world.autoscaler.state
    assert good.asked == ["act"] and state.acting == ("guard",) and state.trouble == "buffers: refused"
    other = Noting("guard")
    with_a_bug = World(live_tables(), Broken("buffers"), other)
    with_a_bug.step()
    assert other.asked == ["act"] and "KeyError" in with_a_bug.autoscaler.state.trouble
    with_a_bug.autoscaler.end()
    assert other.asked == ["act", "retreat"]
    bad.fails = False
    world.step(60)
    world.steady += 60
    world.step()
    assert world.autoscaler.state.trouble == "" and world.autoscaler.state.acting == ("buffers", "guard")


class NeverDone:
    """A session with an API server that hangs."""

    def __init__(self) -> None:
        self.submitted: list[Future[None]] = []

    def submit(self, work: Coroutine[Any, Any, None], /) -> Future[None]:
        work.close()
        self.submitted.append(Future())
        return self.submitted[-1]


def test_a_hand_that_does_not_end_is_stopped_and_the_loads_go_on() -> None:
    session, options = NeverDone(), AutoscaleOptions()
    hands, tables = [Noting("buffers")], live_tables()
    autoscaler = Autoscaler(
        tables, Measured(), session, hands, options, leads=lambda: True, excluded=ExcludedOptions(), turn=0.0
    )
    autoscaler.step()
    assert session.submitted[0].cancelled() and "not finished in time" in autoscaler.state.trouble
    assert len(list(autoscaler.loads())) == 1


def test_at_the_end_what_a_hand_is_at_is_stopped_first() -> None:
    session, hand = NeverDone(), Noting("buffers")
    options = AutoscaleOptions()
    autoscaler = Autoscaler(
        live_tables(), None, session, [hand], options, leads=lambda: True, excluded=ExcludedOptions(), turn=600.0
    )
    stepping = threading.Thread(target=autoscaler.step)
    stepping.start()
    assert eventually(lambda: len(session.submitted) == 1)
    ending = threading.Thread(target=autoscaler.end)
    ending.start()
    stepping.join(30)
    assert not stepping.is_alive() and session.submitted[0].cancelled()
    assert eventually(lambda: len(session.submitted) == 2)
    session.submitted[1].set_result(None)
    ending.join(30)
    autoscaler.step()
    assert len(session.submitted) == 2, "nothing is written after the end"


def test_what_is_written_stays_while_the_cluster_is_not_seen_and_goes_without_a_usable_forecast() -> None:
    hand, tables = Noting("buffers"), live_tables()
    world = World(tables, hand)
    tables.source = StateSource(lambda: (True, tables.clock() - 3600, {}))
    world.step()
    assert hand.asked == [] and world.autoscaler.state.acting == ()
    world = World(LiveScorer(12.0, without_model=True).scorer.tables, hand)
    world.step()
    assert hand.asked == ["retreat"] and not world.autoscaler.state.has_forecast
    assert list(world.autoscaler.loads()) == []


def test_loads_are_said_until_they_are_too_old() -> None:
    tables = live_tables(12.0)
    world = World(tables)
    world.step()
    (load,) = world.autoscaler.loads()
    assert load.labels == {"kind": "Deployment", "name": "service-5", "resource": "cpu"} and load.value >= 1.0
    world.pods.fails = True
    world.step()
    assert world.autoscaler.state.trouble == "no answer" and len(list(world.autoscaler.loads())) == 1
    tables._clock = lambda: at(12.0) + 121
    assert list(world.autoscaler.loads()) == []


def test_metrics_say_what_is_expected_and_who_acts() -> None:
    world = World(live_tables(), Noting("buffers"))
    world.step()
    collector = AutoscalingCollector(lambda: world.autoscaler.state, world.autoscaler.loads, world.hands)
    found = {one.name: one for one in collector.collect()}
    (sample,) = found["forecast_service_expected_load"].samples
    assert sample.labels == {"namespace": "shop", "kind": "Deployment", "name": "service-5", "resource": "cpu"}
    state = [found[f"forecast_autoscale_{name}"].samples[0].value for name in ("leading", "held_up", "acting")]
    assert state == [1, 0, 1] and found["asked_buffers"].samples[0].value == 1


@pytest.mark.parametrize(("measured", "expected"), [(["p0", "p1"], 1.0), (["p0"], 0.5), ([], None)])
def test_a_service_is_measured_if_half_of_its_pods_are(measured: list[str], expected: float | None) -> None:
    usage = np.full(len(RESOURCES), np.nan)
    usage[CPU] = 0.5
    pods = PodsNow({("shop", name): usage for name in measured}, at(12.0))
    used = used_by_service(live_tables(), pods, (service(5),), len(RESOURCES))
    assert np.isnan(used[0, CPU]) if expected is None else used[0, CPU] == expected
    assert np.isnan(used[0, CPU + 1])
    of_four = np.full(len(RESOURCES), 2.0)
    both = PodsNow({**pods.usage, ("shop", "q"): of_four, ("shop", "gone"): of_four}, at(12.0))
    assert used_by_service(live_tables(), both, (service(4),), len(RESOURCES))[0, CPU] == 2.0


def test_why_no_load_is_said_stands_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    """Failed before: the page and the metrics were empty, and nothing said why."""

    def said(autoscaler: Autoscaler) -> str:
        caplog.clear()
        autoscaler.step()
        autoscaler.step()
        lines = [vars(one)["why"] for one in caplog.records if one.getMessage() == "no load is said"]
        assert lines == [autoscaler.state.silent_because] * bool(lines)
        return autoscaler.state.silent_because

    def autoscaler(tables: LiveTables, pods: Measured | None, excluded: ExcludedOptions) -> Autoscaler:
        return Autoscaler(tables, pods, Session(), [], AutoscaleOptions(), leads=lambda: True, excluded=excluded)

    nothing, everything = ExcludedOptions(), ExcludedOptions(namespaces=("shop",))
    assert said(autoscaler(live_tables(), Measured(), nothing)) == ""
    assert "no model" in said(autoscaler(LiveScorer(12.0, without_model=True).scorer.tables, Measured(), nothing))
    assert "--prometheus" in said(autoscaler(live_tables(), None, nothing))
    assert "left out" in said(autoscaler(live_tables(), Measured(), everything))
    empty = Measured()
    empty.pods = lambda: PodsNow({}, at(12.0))  # type: ignore[method-assign]
    assert "Prometheus has no usage" in said(autoscaler(live_tables(), empty, nothing))
