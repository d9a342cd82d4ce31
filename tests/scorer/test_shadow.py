"""Pods believed elsewhere than they sit: predicted there, measured where they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kube.decoding.decoding import Kind
from scorer.service.node_metrics import node_text
from tests.scorer.live_cluster import at, loaded, node, pod_of
from tests.scorer.scorer_at import LiveScorer, shares, tables

SERVED = [pod_of(5, "a", "node-0", started=at(0)), pod_of(4, "b", "node-1", started=at(0))]


def believing(*, in_time: bool = True) -> LiveScorer:
    """Pod a sits on node-0 and is believed on node-2. in_time: said after the model was there."""
    tested = LiveScorer(pods=SERVED, without_model=not in_time)
    tested.scorer.tables._cluster.believe("uid-a", 2)
    if not in_time:
        tested.scorer.tables.install(loaded())
        tested.scorer.tables.tick()
    return tested


def test_a_belief_outlives_midnight_and_ends_with_the_pod_and_its_node() -> None:
    tested = believing()
    tested.put(replace(SERVED[0], labels={"changed": "yes"}))
    assert tables(tested).placed["uid-a"].counts_on == 2
    tested.at(0.5, day=1)
    tested.scorer.tables.rebuild_if_needed()
    assert tables(tested).placed["uid-a"].counts_on == 2
    assert tested.scorer.self_check().drift == ()
    tested = believing()
    tested.scorer.tables.delete(Kind.NODES, node("node-2", 40.0))
    assert tables(tested).placed["uid-a"].counts_on == 0
    assert tested.scorer.self_check().drift == ()
    tested = believing()
    tested.scorer.tables.delete(Kind.PODS, SERVED[0])
    assert tested.scorer.tables._cluster._shadows == {}
    np.testing.assert_allclose(shares(tested), shares(LiveScorer(pods=SERVED[1:])), atol=1e-5)
    tested.scorer.tables._cluster.believe("uid-a", 2)
    assert tested.scorer.tables._cluster._shadows == {}


def test_the_placement_of_a_shadow_has_series_of_its_own() -> None:
    """Those that a cluster would have in which the advice had been followed."""
    followed = LiveScorer(pods=[replace(SERVED[0], node="node-2"), SERVED[1]])
    followed.scorer.tables.refresh_overview()
    expected = followed.scorer.node_figures()
    for tested in (believing(), believing(in_time=False)):
        tested.scorer.tables.refresh_overview()
        found = tested.scorer.node_figures()
        assert found.shadow_usage is not None and found.shadow_peak is not None
        np.testing.assert_allclose(found.shadow_usage, expected.usage, rtol=1e-6)
        np.testing.assert_allclose(found.shadow_peak, expected.peak, rtol=1e-6)
        text = "".join(node_text(found))
        for name in ("usage", "peak"):
            assert f"# TYPE forecast_shadow_node_predicted_{name} gauge" in text
        on_node = tested.scorer.node_forecast("node-0")
        plain = LiveScorer(pods=SERVED).scorer.node_forecast("node-0")
        np.testing.assert_allclose(on_node.curves[0].expected, plain.curves[0].expected, rtol=1e-6)


def test_what_the_model_says_is_of_the_pods_where_they_sit() -> None:
    """It is held against what the nodes use, and they use it there."""
    plain = LiveScorer(pods=SERVED)
    for tested in (believing(), believing(in_time=False)):
        for one in (plain, tested):
            one.scorer.tables.refresh_overview()
        here, there = plain.scorer.node_figures(), tested.scorer.node_figures()
        np.testing.assert_allclose(there.model_usage, here.model_usage, rtol=1e-6)
        np.testing.assert_allclose(there.usage, here.usage, rtol=1e-6)
        np.testing.assert_allclose(there.peak, here.peak, rtol=1e-6)
        assert here.shadow_usage is None and "forecast_shadow" not in "".join(node_text(here))
        assert tables(tested).believes
        tested.delete(SERVED[0])
        plain_again = LiveScorer(pods=SERVED[1:])
        for one in (plain_again, tested):
            one.scorer.tables.refresh_overview()
        assert not tables(tested).believes
        np.testing.assert_allclose(
            tested.scorer.node_figures().model_usage, plain_again.scorer.node_figures().model_usage, rtol=1e-6
        )


def test_a_pod_counts_where_it_is_believed_and_is_no_error_there() -> None:
    really_there = LiveScorer(pods=[replace(SERVED[0], node="node-2"), SERVED[1]])
    for tested in (believing(), believing(in_time=False)):
        np.testing.assert_allclose(shares(tested), shares(really_there), atol=1e-5)
        assert tested.scorer.self_check().drift == ()
    assert not np.allclose(shares(believing()), shares(LiveScorer(pods=SERVED)), atol=1e-3)
    tested, plain = believing(), LiveScorer(pods=SERVED)
    expected = tables(plain).expected_at(np.full(4, tables(plain).horizon.position(plain.clock.now) - 150 / 1800))
    tested.measure(dict(zip([f"node-{i}" for i in range(4)], expected, strict=True)))
    np.testing.assert_allclose(tested.error(), 0, atol=1e-4)
    tested = believing()
    tested.scorer.tables._cluster.believe("uid-a", 0)
    assert tested.scorer.tables._cluster._shadows == {}
    np.testing.assert_allclose(shares(tested), shares(LiveScorer(pods=SERVED)), atol=1e-5)
