"""Pods of jobs weigh on the hours in which they are expected to run, from when they are placed until they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from forecast.model import PeakModel
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo, PodPhase
from tests.scorer.live_cluster import at, loaded, node, pod_of
from tests.scorer.scorer_at import LiveScorer, shares, tables


def seconds_of(pod: PodInfo, service: ServiceKey) -> float | None:
    """A pod named job-30-x runs 30 minutes, others run on and on."""
    return float(pod.name.split("-")[1]) * 60 if pod.name.startswith("job-") else None


def scorer(hour: float, pods: Sequence[PodInfo] = (), of: PeakModel | None = None, *, day: int = 0) -> LiveScorer:
    tested = LiveScorer(hour + 24 * day, without_model=True)
    tested.scorer.tables._cluster.run_of = seconds_of
    tested.scorer.tables.replace(Kind.PODS, list(pods))
    tested.scorer.tables.install(loaded(of))
    tested.scorer.tables.tick()
    return tested


def job(minutes: int, name: str, on: str = "", *, number: int | None = 3, started: float | None = None) -> PodInfo:
    return pod_of(number, f"job-{minutes}-{name}", on, started=started)


def touched(tested: LiveScorer, row: int) -> tuple[int, ...]:
    """Half hours of the horizon in which a node without other pods has more than its base."""
    load = tables(tested).load.snapshot()
    return tuple(np.flatnonzero((load.share - load.base)[row].max(axis=0) > 1e-6).tolist())


def built(tested: LiveScorer) -> LiveScorer:
    """A scorer that hears of the end state only."""
    anew = LiveScorer((tested.clock.now - at(0)) / 3600, without_model=True)
    anew.scorer.tables._cluster.run_of = seconds_of
    anew.scorer.tables.replace(Kind.PODS, list(tested.scorer.tables._cluster.state.pods.values()))
    anew.scorer.tables.install(loaded())
    anew.scorer.tables.tick()
    return anew


def ahead(tested: LiveScorer) -> Floats:
    """What is still to come: (n_nodes, n_resources, n_points)."""
    return np.asarray(shares(tested)[:, :, tables(tested).horizon.weights() > 0], dtype=np.float64)


def test_one_that_waits_is_asked_about_from_now_and_runs_from_when_it_was_bound() -> None:
    tested = scorer(2.0)
    waiting = job(30, "a")
    tested.put(waiting)
    with tested.scorer.tables.reading() as cluster:
        at_two = tables(tested).keys[cluster.profile(waiting)].run
        assert at_two is not None
    tested.at(2.75)
    with tested.scorer.tables.changing() as cluster:
        later = tables(tested).keys[cluster.profile(waiting)].run
        assert later is not None and (later.first, later.end) == (at_two.first + 1, at_two.end + 2)
        cluster.assume(waiting, "node-1", at(3))
    assert touched(tested, 1) == (5, 6)
    tested.at(2.9)
    tested.put(replace(waiting, node="node-1"))  # bound, and pulls its image
    assert touched(tested, 1) == (5, 6)
    tested.at(4.0)  # still
    assert touched(tested, 1) == (5, 6, 7, 8)
    tested.at(4.2)
    tested.put(replace(waiting, node="node-1", phase=PodPhase.RUNNING, started=at(4.1)))
    assert touched(tested, 1) == (8, 9)
    assert tested.scorer.self_check().sound
    tested.put(replace(waiting, node="node-1", phase=PodPhase.SUCCEEDED, started=at(4.1)))
    assert touched(tested, 1) == ()


def test_explaining_and_scoring_look_at_the_run_only() -> None:
    """Node 1 has a peak at 20:00, node 0 is busier now."""
    evening = [pod_of(5, f"e{i}", "node-1", started=at(0)) for i in range(3)]
    now = [job(60, f"n{i}", "node-0", number=None, started=at(3.0)) for i in range(6)]
    tested = scorer(3.1, [*evening, *(replace(pod, requests={"cpu": 1.0, "memory": 1.0}) for pod in now)])
    with tested.scorer.tables.reading() as cluster:
        growth = {
            name: tables(tested).load.growth(cluster.profile(pod), np.arange(2))
            for name, pod in (("job", job(20, "a", number=1)), ("service", pod_of(1, "a")))
        }
    assert growth["job"][1] < growth["job"][0]
    assert growth["service"][1] > growth["service"][0]
    asked = job(20, "asked", number=1)
    tested.put(asked)
    assert len(tested.scorer.explain(asked).nodes) == 4
    tested.scorer.tables.refresh_overview()
    tested.put(job(60, "long", "node-2", number=1, started=at(3.0)))
    with_run, without = (tested.scorer.node_forecast(name).curves[CPU] for name in ("node-2", "node-3"))
    more = np.nan_to_num(np.asarray(with_run.expected) - np.asarray(without.expected))
    assert np.flatnonzero(more > 1.0).size == 2
    service = ServiceKey("shop", "Deployment", "service-1")
    assert len(tested.scorer.service_forecast(service).curves) == 5


def test_a_run_has_its_level_and_the_self_check_finds_one_that_is_over() -> None:
    tested = scorer(3.0)
    with tested.scorer.tables.reading() as cluster:
        night = cluster.expected_use(job(30, "a")).amount
        plain = cluster.expected_use(pod_of(3, "a")).amount
        assert (night > 2 * plain).all()  # the service is quiet at night, its runs are not
        assert cluster.expected_use(job(30, "a", number=None)).source == "requests"
    tested.at(20.0)
    with tested.scorer.tables.reading() as cluster:
        np.testing.assert_array_equal(cluster.expected_use(job(30, "a")).amount, night)
    tested = scorer(2.0, [job(10, "a", "node-1", started=at(2.0))])
    assert tested.scorer.self_check().sound
    tables(tested).horizon = replace(tables(tested).horizon, slot=6)
    (drift,) = tested.scorer.self_check().drift
    assert "a run that is over" in drift


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, 5), st.integers(0, 3), st.sampled_from([5, 40, 700, 20_000])),
        st.tuples(st.just("start"), st.integers(0, 5), st.integers(0, 3), st.sampled_from([5, 40, 700, 20_000])),
        st.tuples(st.just("plain"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("end"), st.integers(0, 5)),
        st.tuples(st.just("later"), st.floats(0.01, 9.0)),
        st.tuples(st.just("node"), st.integers(0, 3), st.sampled_from([20.0, 40.0])),
    ),
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_whatever_happens_the_tables_are_those_of_the_end_state(steps: list[tuple[object, ...]]) -> None:
    tested, there = scorer(20.0), dict[int, PodInfo]()
    for step in steps:
        match step:
            case (("start" | "plain") as what, int(number), int(row), *minutes):
                if number in there:
                    tested.delete(there.pop(number))
                service, started = None if number % 2 else number, tested.clock.now
                name = f"job-{minutes[0]}-{number}" if what == "start" else f"plain-{number}"
                there[number] = pod_of(service, name, f"node-{row}", cpu=2.0, started=started)
                tested.put(there[number])
            case ("end", int(number)) if number in there:
                tested.put(replace(there.pop(number), phase=PodPhase.SUCCEEDED))
            case ("later", float(hours)):
                tested.later(3600 * hours)
            case ("node", int(row), float(size)):
                tested.scorer.tables.put(Kind.NODES, node(f"node-{row}", size))
    assert tested.scorer.self_check().sound
    anew = built(tested)
    anew.scorer.tables.replace(
        Kind.NODES, [info for info in tested.scorer.tables._cluster.state.nodes if info is not None]
    )
    np.testing.assert_allclose(ahead(tested), ahead(anew), atol=1e-4)
    np.testing.assert_allclose(tables(tested).pods_now(), tables(anew).pods_now(), rtol=1e-4, atol=1e-4)
    running = {pod.uid for pod in there.values() if pod.name.startswith("job-")}
    assert set(tested.scorer.tables._cluster._runs) == running
