"""Live usage against the forecast, charges and departures, as the scorer is told of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from kube.objects.objects import PodPhase
from tests.kube.api_objects import replica_set
from tests.scorer.live_cluster import at, loaded, node, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

SERVED = [pod_of(5, "a", "node-0", started=at(0)), pod_of(4, "b", "node-1", started=at(0))]


def as_expected(tested: LiveScorer) -> dict[str, np.ndarray]:
    """What a metric shows when every pod that it knows uses what is predicted."""
    predicted = tables(tested)
    usage = predicted.expected_at(np.full(predicted.load.n_nodes, position(tested)))
    return dict(zip([f"node-{i}" for i in range(4)], usage, strict=False))


def position(tested: LiveScorer) -> float:
    """The middle of the window of a metric sampled now, in half hours since midnight."""
    predicted = tables(tested)
    return predicted.horizon.position(tested.clock.now) - 150 / 1800


def use_of(tested: LiveScorer, uid: str) -> np.ndarray:
    """What one pod is expected to use in that window."""
    predicted = tables(tested)
    return predicted.use_at(predicted.placed[uid].profile, position(tested))


def test_usage_beyond_the_forecast_is_the_live_error_by_name_or_address_of_the_node() -> None:
    tested = LiveScorer(pods=SERVED)
    usage = as_expected(tested)
    usage["node-1"] = usage["node-1"] + np.array([3.0, 0, 0, 0, np.nan])
    tested.measure(usage)
    expected = np.zeros((4, 5))
    expected[1, CPU] = 3.0
    np.testing.assert_allclose(tested.error(), expected, atol=1e-4)
    tested = LiveScorer(pods=SERVED)
    usage = as_expected(tested)
    tested.measure({"10.0.0.2": usage["node-2"] + 5.0, "node-0": usage["node-0"]})
    np.testing.assert_allclose(tested.error()[:, CPU], [0, 0, 5, 0], atol=1e-4)
    assert tested.scorer.status().measured_nodes == 2


def test_a_pod_that_has_just_started_is_no_error_of_the_forecast_while_its_share_of_the_window_grows() -> None:
    tested = LiveScorer(pods=SERVED)
    before = as_expected(tested)
    began = tested.clock.now
    new = pod_of(5, "new", "node-2", started=None)
    tested.put(new)
    tested.measure(before)
    np.testing.assert_allclose(tested.error(), 0, atol=1e-4)
    tested.put(replace(new, started=began))
    for seconds in (30, 150, 270, 330):
        tested.clock.now = began + seconds
        usage = as_expected(tested)
        usage["node-2"] = usage["node-2"] - (1 - min(seconds / 300, 1.0)) * use_of(tested, "uid-new")
        tested.measure(usage)
        np.testing.assert_allclose(tested.error(), 0, atol=1e-3)
    assert len(tested.scorer.tables._cluster.charges) == 0
    tested.measure(before)  # it should be using something by now
    assert tested.error()[2, CPU] < -1


def test_a_pod_that_has_left_is_no_error_while_metrics_still_show_it() -> None:
    tested = LiveScorer(pods=SERVED)
    use, left_at = use_of(tested, SERVED[0].uid), tested.clock.now
    tested.delete(SERVED[0])
    for seconds in (1, 100, 299, 400):
        tested.clock.now = left_at + seconds
        usage = as_expected(tested)
        usage["node-0"] = usage["node-0"] + (1 - min(seconds / 300, 1.0)) * use
        tested.measure(usage)
        np.testing.assert_allclose(tested.error(), 0, atol=1e-3)


@pytest.mark.parametrize("started", [None, at(17.0) - 30])
def test_a_pod_that_failed_at_once_leaves_no_error_behind(started: float | None) -> None:
    tested = LiveScorer(pods=SERVED)
    before = as_expected(tested)
    failing = pod_of(5, "failing", "node-3", started=started)
    tested.put(failing)
    tested.put(replace(failing, phase=PodPhase.FAILED))
    share = 0.0 if started is None else 30 / 300
    usage = dict(before)
    use = before["node-0"] - np.array([0.5] * 5)  # another pod of the service does the same there
    usage["node-3"] = usage["node-3"] + share * use
    tested.measure(usage)
    assert np.abs(tested.error()[3]).max() < 0.3
    assert len(tested.scorer.tables._cluster.charges) == 0


def test_pods_being_replaced_still_use_something_now() -> None:
    old = replica_set("service-5-7d9f", deployment="service-5", revision=1, created=at(0))
    new = replica_set("service-5-8c5b", deployment="service-5", revision=2, desired_replicas=1, created=at(16.9))
    pods = [replace(SERVED[0], owner_uid=old.uid), SERVED[1]]
    tested = LiveScorer(pods=pods)
    usage = as_expected(tested)
    tested.scorer.tables.replace(Kind.REPLICA_SETS, [old, new])
    predicted = tables(tested)
    assert predicted.placed["uid-a"].weight == 0.0
    tested.measure(usage)
    np.testing.assert_allclose(tested.error(), 0, atol=1e-4)
    assert not tables(tested).load.pods_on(0)


def test_measurements_correct_while_they_are_new_and_none_of_the_future_or_late_ones() -> None:
    tested = LiveScorer(pods=SERVED)
    tested.measure({"node-0": 30.0})
    assert tested.error()[0].any()
    tested.later(299)
    assert tested.error()[0].any()
    tested.later(2)
    assert not tested.error().any()
    assert np.isnan(tested.scorer.virtual_available().available).all()
    tested = LiveScorer(pods=SERVED)
    tested.at(20.0)
    tested.measure({"node-0": 30.0})
    tested.at(17.0)
    assert tested.scorer.status().measured_nodes == 0  # what was measured in the future says nothing now
    assert not tested.error().any()
    tested.measure({"node-0": 9.0})
    assert tested.scorer.status().measured_nodes == 1
    assert tested.scorer.virtual_available().available[0, CPU] == pytest.approx(31.0)
    tested = LiveScorer(pods=SERVED)
    tested.measure({"node-0": 30.0}, ago=10)
    tested.measure({"node-0": 9.0}, ago=60)
    assert tested.scorer.virtual_available().available[0, CPU] == pytest.approx(10.0)
    tested.measure({"node-1": 1.0})
    assert tested.scorer.virtual_available().available[0, CPU] == pytest.approx(10.0)


def test_virtual_available_counts_what_no_metric_has_seen() -> None:
    tested = LiveScorer(pods=SERVED)
    said = {VIRTUAL_REQUEST_ANNOTATION: '{"cpu": "800m", "network": 5}'}
    tested.measure({f"node-{i}": 10.0 for i in range(4)})
    before = tested.scorer.virtual_available()
    assert before.pods_charged == 0
    np.testing.assert_array_equal(before.available, 30.0)
    new = pod_of(None, "new", "node-1", memory=2.0, annotations=said)
    tested.put(new)
    after = tested.scorer.virtual_available()
    assert after.pods_charged == 1
    np.testing.assert_allclose(after.charged[1], [0.8, 2.0, 0, 5, 0])
    np.testing.assert_allclose(before.available - after.available, after.charged)
    tested.put(replace(new, started=tested.clock.now))
    tested.clock.now += 150
    tested.measure({f"node-{i}": 10.0 for i in range(4)})
    np.testing.assert_allclose(tested.scorer.virtual_available().charged[1], [0.4, 1.0, 0, 2.5, 0])
    tested.delete(new)
    assert not tested.scorer.virtual_available().charged.any()


def test_a_mistaken_virtual_request_is_told_where_the_pod_is_explained() -> None:
    tested = LiveScorer(pods=SERVED)
    broken = pod_of(None, "new", "node-1", cpu=3.0, annotations={VIRTUAL_REQUEST_ANNOTATION: "[" * 100_000})
    tested.put(broken)
    assert tested.scorer.virtual_available().charged[1, CPU] == 3.0
    explanation = tested.scorer.explain(broken)
    assert explanation.virtual_request_source == "requests"
    assert any("virtual-request of the pod is ignored" in reason for reason in explanation.reasons)


def test_a_node_that_goes_and_a_new_one_in_its_row_share_nothing() -> None:
    tested = LiveScorer()
    tested.measure({"node-3": 30.0})
    tested.scorer.tables.delete(Kind.NODES, node("node-3"))
    assert tested.scorer.score(pod_of(0, "x")).nodes == ["node-0", "node-1", "node-2"]
    tested.scorer.tables.put(Kind.NODES, node("node-9", 80.0))
    available = tested.scorer.virtual_available()
    assert available.nodes[-1] == "node-9"
    assert available.capacity[-1, CPU] == 80
    assert np.isnan(available.available[-1]).all()
    assert not tested.error().any()
    assert tested.scorer.self_check().sound


def test_pods_may_come_before_their_node_and_before_a_model() -> None:
    tested = LiveScorer()
    tested.put(pod_of(5, "early", "node-7", started=at(0)))
    assert "node-7" not in tested.scorer.score(pod_of(0, "x")).nodes
    tested.scorer.tables.put(Kind.NODES, node("node-7"))
    scored = tested.scorer.score(pod_of(5, "x"))
    assert scored.nodes[int(np.argmin(scored.scores))] == "node-7"
    assert tested.scorer.self_check().sound
    new = pod_of(5, "new", "node-1", cpu=0.5, started=at(17.0))
    tested = LiveScorer(pods=[new], without_model=True)
    assert tested.scorer.virtual_available().charged[1, CPU] == 0.5
    tested.scorer.tables.install(loaded())
    tested.scorer.tables.tick()
    predicted = tables(tested)
    charged = tested.scorer.virtual_available().charged
    np.testing.assert_allclose(charged[1], predicted.use_now(predicted.placed["uid-new"].profile))
    assert charged[1, CPU] != 0.5
    assert tested.scorer.self_check().sound


def test_usage_as_predicted_is_no_error_at_any_time_of_the_evening() -> None:
    """Around a full half hour above all, where the expectation would otherwise jump."""
    tested = LiveScorer(pods=SERVED)
    for minutes in range(0, 180, 7):
        tested.clock.now = at(17.0) + 60 * minutes
        tested.scorer.tables.tick()
        tested.measure(as_expected(tested))
        np.testing.assert_allclose(tested.error(), 0, atol=1e-3)
        tested.clock.now += 20  # the clock goes on, the sample does not
        tested.scorer.tables.tick()
        np.testing.assert_allclose(tested.error(), 0, atol=0.05)
