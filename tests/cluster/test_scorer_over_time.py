"""The scorer while time passes, models change and anything happens in between."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tables_anew import predict
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from tests.kube.api_objects import replica_set
from tests.scorer.live_cluster import at, loaded, model, node, pod_of
from tests.scorer.scorer_at import LiveScorer, rebuilt, shares, tables

PODS = [pod_of(i % 6, f"p{i}", f"node-{i % 3}", started=at(0), memory=1.0 + i) for i in range(9)]
EVERYTHING = dict.fromkeys(("predicted_peak", "least_allocated", "qos_balance", "balance", "most_available"), 1.0)


def test_pods_that_come_go_and_change_while_a_model_is_installed_are_all_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested = LiveScorer(pods=PODS)
    doubled = replace(model(), usage_dated=2 * model().usage_dated)
    set_of_4 = replica_set("service-4-7d9f", deployment="service-4", revision=1, created=at(0))
    orphan = replace(pod_of(4, "orphan", "node-3", started=at(0)), labels={}, owner_uid=set_of_4.uid)
    tested.put(orphan)  # nobody knows yet whose it is
    real = predict

    def slow(*arguments: object) -> PredictedCluster:
        made = real(*arguments)  # type: ignore[arg-type]
        tested.delete(PODS[0])
        tested.put(replace(PODS[1], terminating=True))
        tested.put(replace(PODS[2], qos=PODS[2].qos.__class__.GUARANTEED))
        for i in range(4):
            tested.put(pod_of(5, f"new-{i}", "node-3", started=at(17)))
        tested.put(pod_of(None, "bare", "node-8"))
        tested.scorer.tables.put(Kind.NODES, node("node-8"))
        tested.scorer.tables.put(Kind.NODES, node("node-1", 80.0))
        tested.scorer.tables.delete(Kind.NODES, node("node-2"))
        tested.scorer.tables.replace(Kind.REPLICA_SETS, [set_of_4])  # only now
        tested.scorer.tables.tick()
        return made

    monkeypatch.setattr("cluster.live_tables.predict", slow)
    tested.scorer.tables.install(loaded(doubled, "v2"))
    monkeypatch.undo()
    assert tested.scorer.score(PODS[0]).model_version == "v2"
    assert tested.scorer.self_check().drift == ()
    anew = rebuilt(tested, doubled)
    of_name = {name: row for row, name in enumerate(anew.scorer.tables._cluster.state.names)}
    for row, name in enumerate(tested.scorer.tables._cluster.state.names):
        np.testing.assert_allclose(shares(tested)[row], shares(anew)[of_name[name]], atol=1e-4)
        np.testing.assert_allclose(
            tables(tested).pods_now()[row], tables(anew).pods_now()[of_name[name]], rtol=1e-4, atol=1e-4
        )


def test_a_model_that_arrives_while_midnight_waits_is_not_replaced_by_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested = LiveScorer(23.9, pods=PODS)
    real, under_way, go_on = predict, threading.Event(), threading.Event()

    def slow(*arguments: object) -> PredictedCluster:
        under_way.set()
        assert go_on.wait(10)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("cluster.live_tables.predict", slow)
    installing = threading.Thread(target=tested.scorer.tables.install, args=[loaded(version="v2")])
    installing.start()
    assert under_way.wait(10)
    midnight = threading.Thread(target=tested.at, args=[24.01])
    midnight.start()
    while not tested.scorer.tables._rebuilding.locked() or tested.clock.now < at(24):
        pass
    midnight.join(0.2)  # it waits for the other
    go_on.set()
    installing.join(10)
    midnight.join(10)
    assert tested.scorer.score(PODS[0]).model_version == "v2"
    assert tables(tested).horizon.slot == 0


def test_midnight_makes_tables_anew_and_a_half_hour_moves_what_is_expected() -> None:
    tested = LiveScorer(23.9, pods=PODS)
    yesterday = tables(tested)
    tested.at(23.99)
    assert tables(tested) is yesterday
    tested.at(24.01)
    assert tables(tested) is not yesterday
    assert tables(tested).horizon.today == model().calendar.horizon(model().first_day, 2)[1]
    assert tables(tested).horizon.slot == 0
    np.testing.assert_allclose(shares(tested), shares(rebuilt(tested)), atol=1e-5)
    assert tested.scorer.self_check().sound
    tested = LiveScorer(12.0, pods=PODS)
    noon = tables(tested).pods_now()
    tested.at(20.0)
    assert (tables(tested).pods_now()[:3, CPU] > 1.5 * noon[:3, CPU]).all()
    np.testing.assert_allclose(tables(tested).pods_now(), tables(rebuilt(tested)).pods_now(), rtol=1e-5)


def test_a_change_that_could_not_be_followed_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = LiveScorer(pods=PODS)

    def fail(*arguments: object, **named: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(PredictedCluster, "place", fail)
    with pytest.raises(RuntimeError):
        tested.put(pod_of(5, "new", "node-3", started=at(17)))
    monkeypatch.undo()
    assert not tested.scorer.self_check().sound  # the columns have it, the predicted load has not
    tested.scorer.tables.rebuild_if_needed()
    assert tested.scorer.self_check().sound
    assert tables(tested).load.pods_on(3)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 9), st.sampled_from([None, *range(6)]), st.integers(0, 5)),
        st.tuples(st.just("pod"), st.integers(0, 9), st.sampled_from([None, *range(6)]), st.integers(0, 5)),
        st.tuples(st.just("gone"), st.integers(0, 9)),
        st.tuples(st.just("node"), st.integers(0, 5), st.sampled_from([20.0, 40.0])),
        st.tuples(st.just("no node"), st.integers(0, 5)),
        st.tuples(st.just("time"), st.sampled_from([-26.0, -1.0, 0.01, 0.1, 1.0, 30.0])),
        st.tuples(st.just("measure")),
        st.tuples(st.just("advice"), st.integers(0, 9), st.integers(0, 5)),
        st.tuples(st.just("explain"), st.integers(0, 9)),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(EVENTS)
def test_the_self_check_is_sound_whatever_happens(events: list[tuple[object, ...]]) -> None:
    tested = LiveScorer(pods=PODS[:4])
    hour = 17.0
    for event in events:
        match event:
            case ("pod", int(uid), number, int(on)):
                started = tested.clock.now - 60 if uid % 2 else None
                changed = pod_of(number, f"e{uid}", f"node-{on}", started=started, terminating=uid == 3)  # type: ignore[arg-type]
                tested.put(changed)
            case ("gone", int(uid)):
                tested.delete(pod_of(None, f"e{uid}"))
            case ("node", int(number), float(size)):
                tested.scorer.tables.put(Kind.NODES, node(f"node-{number}", size))
            case ("no node", int(number)):
                tested.scorer.tables.delete(Kind.NODES, node(f"node-{number}"))
            case ("time", float(hours)):
                hour += hours
                tested.at(hour)
            case ("measure",):
                tested.measure({f"node-{i}": float(i) for i in range(5)}, ago=20)
            case ("advice", int(uid), int(on)):
                tested.scorer.charge_provisionally(pod_of(1, f"e{uid}"), f"node-{on}", 2.0)
            case ("explain", int(uid)):
                tested.scorer.explain(pod_of(2, f"e{uid}"))
        scored = tested.scorer.score(pod_of(0, "asked"), weights=EVERYTHING)
        assert np.isfinite(scored.scores).all()
        assert ((scored.scores >= 0) & (scored.scores <= 100)).all()
    tested.scorer.tables.tick()
    assert tested.scorer.self_check().drift == ()
