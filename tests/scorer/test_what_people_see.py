"""Forecasts of nodes and services, the list of nodes, the heat map and the figures for metrics."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from cluster.degradation import Level
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU, MEMORY
from kube.decoding.decoding import Kind
from scorer.figures import published_losses
from tests.scorer.live_cluster import at, loaded, model, node, pod_of, service
from tests.scorer.scorer_at import LiveScorer, tables

PODS = [
    *(pod_of(5, f"p{i}", f"node-{i % 2}", started=at(0)) for i in range(4)),
    pod_of(1, "q", "node-2", started=at(0)),
]


@pytest.fixture
def tested() -> LiveScorer:
    made = LiveScorer(12.0, pods=PODS)
    made.measure_as_expected()
    made.scorer.tables.refresh_overview()
    return made


def test_a_node_from_two_days_ago_to_the_end_of_the_week(tested: LiveScorer) -> None:
    found = tested.scorer.node_forecast("node-0")
    assert (found.name, found.level, found.model_version, found.pods) == ("node-0", Level.FRESH, "v1", 2)
    assert len(found.starts) == 9 * SLOTS_PER_DAY
    assert found.starts[0].timestamp() == at(0, -2)
    assert found.starts[2 * SLOTS_PER_DAY + 24].timestamp() == tested.clock.now
    cpu = found.curves[CPU]
    assert cpu.capacity == 40.0
    assert cpu.actual is not None
    assert np.flatnonzero(np.isfinite(cpu.actual)).tolist() == list(range(2 * SLOTS_PER_DAY + 24))
    assert cpu.bound is not None
    assert (cpu.bound >= cpu.expected).all()
    tonight = cpu.days[2]
    assert tonight.day == model().first_day
    assert 19 <= tonight.at.hour <= 20
    assert tonight.expected == pytest.approx(2 * 6 + 0.5, rel=0.3)  # two pods of six cores
    tested.scorer.tables.put(Kind.PODS, pod_of(5, "more", "node-0"))
    tested.scorer.tables.tick()
    assert tested.scorer.node_forecast("node-0").pods == 3


def test_live_error_is_in_the_hours_to_come_and_an_unreadable_history_is_a_note(tested: LiveScorer) -> None:
    before = tested.scorer.node_forecast("node-3").curves[CPU].expected
    tested.measure({"node-3": 8.5})
    difference = tested.scorer.node_forecast("node-3").curves[CPU].expected - before
    now = 2 * SLOTS_PER_DAY + 24
    assert not difference[:now].any()
    assert difference[now] == pytest.approx(8.0, abs=0.3)
    assert difference[now + 12] == pytest.approx(difference[now] / 2, rel=1e-3)
    tested.usage.now = None
    for found in (tested.scorer.node_forecast("node-0"), tested.scorer.service_forecast(service(5))):
        assert found.curves[CPU].actual is None
        assert any("cannot be read: nobody answers" in note for note in found.notes)


def test_a_service_has_its_total_whatever_its_pods_and_whoever_knows_it(tested: LiveScorer) -> None:
    before = tested.scorer.service_forecast(service(5))
    assert before.pods == 4
    evening = 2 * SLOTS_PER_DAY + 40
    assert before.curves[CPU].expected[evening] == pytest.approx(4 * 6, rel=0.2)
    assert before.curves[CPU].bound is not None
    for i in range(4, 8):
        tested.put(pod_of(5, f"p{i}", "node-3"))
    after = tested.scorer.service_forecast(service(5))
    assert after.pods == 8
    np.testing.assert_allclose(after.curves[CPU].expected, before.curves[CPU].expected, rtol=1e-6)
    np.testing.assert_allclose(after.curves[MEMORY].expected, 2 * before.curves[MEMORY].expected, rtol=1e-6)
    absent = tested.scorer.service_forecast(service(3))
    assert absent.pods == 0
    assert absent.curves[CPU].expected.max() > 0
    bare = pod_of(None, "bare", "node-3", cpu=2.0)
    tested.put(bare)
    key = next(s for s in tested.scorer.services() if not s.known)
    assert (key.namespace, key.kind, key.name, key.pods) == ("shop", "Pod", "bare", 1)
    found = tested.scorer.service_forecast(tested.scorer.tables._cluster.state.service_key(bare))
    assert "predicted from its requests" in found.notes[0]
    assert found.curves[CPU].expected.max() > 0


def test_without_a_model_there_is_nothing_to_show_and_it_says_so() -> None:
    tested = LiveScorer(pods=PODS, without_model=True)
    tested.scorer.tables.refresh_overview()
    for found in (tested.scorer.node_forecast("node-0"), tested.scorer.service_forecast(service(5))):
        assert found.curves == ()
        assert found.notes == ("no model has been published",)
    assert tested.scorer.heat_map().nodes == ()
    assert tested.scorer.nodes().nodes[0].today is None
    assert np.isnan(tested.scorer.node_figures().peak).all()
    assert tested.scorer.backtest_loss() == {}


def test_the_hottest_nodes_come_first_and_only_the_hours_to_come_count(tested: LiveScorer) -> None:
    heat = tested.scorer.heat_map()
    assert heat.nodes[-1] == "node-3"
    assert set(heat.nodes[:2]) == {"node-0", "node-1"}
    assert heat.n_nodes == 4
    assert heat.share.shape == (4, 7 * 24)
    assert heat.hours[0].timestamp() == at(0)
    assert heat.hours[int(heat.share[0].argmax()) % 24].hour in (19, 20)
    assert tested.scorer.heat_map(top=2).nodes == heat.nodes[:2]
    curve = tested.scorer.node_forecast(heat.nodes[0]).curves[CPU].expected[2 * SLOTS_PER_DAY :] / 40
    cpu = tested.scorer.heat_map(resource="cpu", top=1).share[0]
    np.testing.assert_allclose(cpu, curve.reshape(-1, 2).max(axis=1), rtol=0.05)
    unlimited = tested.scorer.heat_map(resource="log").share
    assert np.isfinite(unlimited).all()


def test_figures_agree_with_the_curves_and_peaks_are_frozen_at_midnight(tested: LiveScorer) -> None:
    figures = tested.scorer.node_figures()
    curve = tested.scorer.node_forecast("node-0").curves[CPU]
    now = 2 * SLOTS_PER_DAY + 24
    # The mean of the half hour, to compare with usage; the highest half hour of the curve is the expected peak.
    assert figures.usage[0, CPU, 0] == pytest.approx(curve.expected[now], rel=0.1)
    assert curve.bound is not None
    assert figures.usage[0, CPU, 1] == pytest.approx(curve.bound[now])
    assert figures.peak[0, CPU, 0].tolist() == pytest.approx([day.expected for day in curve.days[2:4]])
    assert figures.peak[0, CPU, 1].tolist() == pytest.approx([day.bound for day in curve.days[2:4]])
    assert figures.peak_at[0, CPU].tolist() == [day.at.timestamp() for day in curve.days[2:4]]
    assert figures.capacity[0, CPU] == curve.capacity
    assert np.isnan(figures.frozen_peak).all()
    tested.at(0.1, 1)
    tested.scorer.tables.refresh_overview()
    frozen = tested.scorer.node_figures()
    np.testing.assert_array_equal(frozen.frozen_peak, frozen.peak)
    tested.put(pod_of(5, "more", "node-0"))
    tested.at(1.0, 1)
    tested.scorer.tables.refresh_overview()
    later = tested.scorer.node_figures()
    np.testing.assert_array_equal(later.frozen_peak, frozen.frozen_peak)
    assert later.peak[0, CPU, 0, 0] > frozen.peak[0, CPU, 0, 0]


def test_what_the_model_says_stays_where_it_is_when_nodes_use_three_times_as_much() -> None:
    """Predicted usage follows what is measured within a look: held against usage it would always be right."""
    tested, unmeasured = LiveScorer(12.0, pods=PODS), LiveScorer(12.0, pods=PODS)
    for half_hour in range(8):
        for one in (tested, unmeasured):
            # Measured over the five minutes around the middle, where the model's curve and its mean are the same.
            one.at(12.25 + half_hour / 2 + 150 / 3600)
        predicted = tables(tested)
        model = predicted.base_now() + predicted.pods_now()
        actual = 3 * model + 5
        tested.measure({predicted.name_of(row): actual[row] for row in range(len(actual))})
        for one in (tested, unmeasured):
            one.scorer.tables.refresh_overview()
        figures, without = tested.scorer.node_figures(), unmeasured.scorer.node_figures()
        limits = np.isfinite(figures.capacity)  # where there is none, no error is known
        assert limits[:, CPU].all()
        np.testing.assert_allclose(figures.usage[limits, 0], actual[limits], rtol=1e-4)
        np.testing.assert_allclose(figures.model_usage[:, :, 0], model, rtol=1e-4, atol=1e-6)
        assert (figures.model_usage[:, CPU, 1] < actual[:, CPU]).all()  # outside of the bound, as it is to be seen
        assert (figures.usage[:, CPU, 1] > actual[:, CPU]).all()
        np.testing.assert_allclose(figures.model_usage, without.usage, rtol=1e-6)
        np.testing.assert_array_equal(figures.model_usage, without.model_usage)


@pytest.mark.parametrize("hour", [0.1, 12.0, 23.6])
def test_what_the_model_says_goes_on_with_the_next_half_hour(hour: float) -> None:
    tested = LiveScorer(hour, pods=PODS)
    tested.scorer.tables.refresh_overview()
    before = tested.scorer.node_figures().model_usage
    if hour < 23:
        tested.at(hour + 0.5)
        later = tested.scorer.node_figures().model_usage
        assert not np.array_equal(later, before)
        tested.scorer.tables.refresh_overview()
        np.testing.assert_allclose(tested.scorer.node_figures().model_usage, later, rtol=1e-6)
    assert np.isfinite(before).all()
    assert (before[:, CPU, 1] > before[:, CPU, 0]).all()


def test_the_list_of_nodes_has_tonight_and_tomorrow_and_new_nodes_no_figures_yet(tested: LiveScorer) -> None:
    tested.scorer.tables.put(Kind.NODES, replace(node("node-3"), unschedulable=True))
    listed = {summary.name: summary for summary in tested.scorer.nodes().nodes}
    assert list(listed) == [f"node-{i}" for i in range(4)]
    assert [summary.ready for summary in listed.values()] == [True, True, True, False]
    today, tomorrow = listed["node-0"].today, listed["node-0"].tomorrow
    assert today is not None
    assert tomorrow is not None
    assert today.at.date() + timedelta(days=1) == tomorrow.at.date()
    assert today.share == pytest.approx(today.expected / 40)
    assert listed["node-0"].measured_seconds_ago == 0
    tested.scorer.tables.put(Kind.NODES, node("node-9"))
    tested.scorer.tables.delete(Kind.NODES, node("node-1"))
    figures = tested.scorer.node_figures()
    assert figures.nodes == ("node-0", "node-2", "node-3", "node-9") or set(figures.nodes) == {
        "node-0", "node-2", "node-3", "node-9"
    }  # fmt: skip
    row = figures.nodes.index("node-9")
    assert np.isnan(figures.peak[row]).all()
    assert np.isfinite(figures.peak[figures.nodes.index("node-0")]).all()


def test_peaks_of_services_are_those_of_the_model(tested: LiveScorer) -> None:
    keys, resources, peaks = tested.scorer.service_peaks()
    assert resources[0] == "cpu"
    row = keys.index(str(service(5)))
    np.testing.assert_allclose(peaks[row], model().service_peaks(model().first_day)[5], rtol=1e-6)


def test_losses_are_read_from_the_backtest_or_else_from_the_gate() -> None:
    backtest = {"resources": {"cpu": {"ours": {"loss50": 1.0, "loss95": 2}}, "disk": "broken", "log": {"ours": {}}}}
    gate = {"gate": {"cpu": {"candidate": {"loss50": 9.0}}, "disk": {"candidate": {"loss50": 3.0, "loss95": None}}}}
    from forecast.backtest import OURS

    backtest["resources"] = {
        name: {OURS: value["ours"]} if isinstance(value, dict) else value
        for name, value in backtest["resources"].items()
    }
    assert published_losses(backtest, gate) == {("cpu", "0.5"): 1.0, ("cpu", "0.95"): 2.0, ("disk", "0.5"): 3.0}
    assert published_losses({"resources": 7}, {"gate": []}) == {}
    assert loaded().backtest == {}


def test_of_a_resource_that_was_held_back_the_loss_is_that_of_the_arrays_it_kept() -> None:
    losses = {"candidate": {"loss50": 9.0, "loss95": 8.0}, "current": {"loss50": 3.0, "loss95": 2.0}}
    gate = {name: {"verdict": name, **losses} for name in ("passed", "held_back", "widened")}
    found = published_losses({}, {"gate": gate})
    assert {name: found[name, "0.5"] for name in gate} == {"passed": 9.0, "held_back": 3.0, "widened": 9.0}
