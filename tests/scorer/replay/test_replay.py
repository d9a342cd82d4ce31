"""The replay as a whole: nobody but the oracle sees the future, everybody carries the same load, the figures add up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from base.errors import InputError, NotEnoughHistory
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU
from scorer.replay.recording import record
from scorer.replay.replay import LADDER, RULES, Replay, replay
from scorer.replay.replay_page import replay_page
from scorer.replay.replay_rules import Live, Native
from scorer.replay.running_cluster import play
from scorer.replay.window import playable_days, replay_window
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import N_DAYS, REPLICAS, by_day, curves, small_cluster


@pytest.fixture(scope="module")
def played() -> Replay:
    history, pods = small_cluster()
    return replay(history, pods, simple_forecast, seed=3, hot=HOT_SHARE)


def test_a_window_is_the_last_0400_that_leaves_the_days_and_lies_in_the_history() -> None:
    history, _ = small_cluster()
    window = replay_window(history, None, 7)
    assert window.first_day == N_DAYS - 8
    assert window.first_slot == 8
    assert window.history_slot + window.n_slots <= N_DAYS * 48
    asked = replay_window(history, datetime(2026, 1, 20, 12, 30), 2)
    assert (asked.first_day, asked.first_slot, asked.n_slots) == (15, 25, 96)
    history, _ = small_cluster()
    with pytest.raises(InputError, match="choose a time up to 2026-01-29"):
        replay_window(history, datetime(2026, 1, 31, 4), 7)
    with pytest.raises(InputError, match=r"2 whole local days .* before 2026-01-07 04:00.* from 2026-01-12 00:00 on"):
        replay_window(history, datetime(2026, 1, 7, 4), 7)
    with pytest.raises(InputError, match=r"^0 whole local days"):
        replay_window(history, datetime(2025, 12, 7, 4), 7)
    assert replay_window(history, datetime(2026, 1, 12), 7).first_day == 7
    with pytest.raises(
        NotEnoughHistory, match=r"holds 9 .* 15 are needed .*play 7 days back.*: play at most 1 back with"
    ):
        replay_window(history.before(9), None, 7)
    with pytest.raises(NotEnoughHistory, match=r"holds 8 .* 9 are needed .*: wait for more days, or export"):
        replay_window(history.before(8), None, playable_days(history.before(8), 7))
    assert [playable_days(history.before(days), 7) for days in (8, 9, 12, 15, 20)] == [1, 1, 4, 7, 7]


def test_all_rules_fit_requests_and_the_forecast_comes_close_to_the_true_future(played: Replay) -> None:
    report = json.loads(json.dumps(played.to_json()))
    assert tuple(report["rules"]) == RULES
    assert tuple(report["degradation"]) == LADDER
    for figures in report["rules"].values():
        assert 0 <= figures["hot_share"] <= 1
        assert set(figures["peak_cv"]) == set(figures["p99_peak"]) == {"cpu", "memory", "disk"}
    assert set(report["gap_closed"]) == {"hot_share", "peak_cv"}
    assert set(report["rules"]["forecast"]["node_bound_coverage"]["cpu"]) == {"coverage", "n"}
    recording = played.recording
    for name, playback in played.playbacks.items():
        assert playback.unplaced == 0, name
        for slot in (0, 30, 36, 43, 100, 300):
            alive = (recording.birth <= slot) & (recording.death > slot)
            requested = np.zeros_like(recording.allocatable)
            np.add.at(requested, playback.node[alive], recording.requests[alive])
            assert (requested <= recording.allocatable * (1 + 1e-6)).all(), (name, slot)
    native, ours, oracle = (played.figures[name] for name in ("native", "forecast", "oracle"))
    assert ours.peak_cv["cpu"] < native.peak_cv["cpu"]
    assert ours.p99_peak["cpu"] < native.p99_peak["cpu"]
    assert oracle.hot_share <= native.hot_share


def test_the_same_seed_gives_the_same_placement(played: Replay) -> None:
    history, pods = small_cluster()
    again = replay(history, pods, simple_forecast, seed=3, ladder=False, hot=HOT_SHARE)
    for name, playback in again.playbacks.items():
        np.testing.assert_array_equal(playback.node, played.playbacks[name].node)
    other = replay(history, pods, simple_forecast, seed=4, ladder=False, hot=HOT_SHARE)
    assert any((other.playbacks[name].node != again.playbacks[name].node).any() for name in other.playbacks)


@pytest.mark.parametrize("hours_later", [0, 24 + 16])
def test_changing_the_future_changes_no_placement_but_the_oracles(played: Replay, hours_later: int) -> None:
    """From some moment on, usage is another: what was decided before must not move."""
    moment = played.window.history_slot + 2 * hours_later
    cpu = curves()
    cpu[:, moment:] = cpu[::-1, moment:] * 3  # services swap their curves
    history, pods = small_cluster(cpu=cpu)
    changed = replay(history, pods, simple_forecast, seed=3, hot=HOT_SHARE)
    decided = played.recording.birth <= 2 * hours_later
    assert decided.sum() >= sum(REPLICAS)
    for name in played.playbacks:
        same = changed.playbacks[name].node[decided] == played.playbacks[name].node[decided]
        assert name == "oracle" or same.all(), name
    assert (changed.playbacks["oracle"].node[decided] != played.playbacks["oracle"].node[decided]).any()


def test_nodes_that_vanished_or_have_no_size_take_no_part() -> None:
    history, pods = small_cluster()
    window = replay_window(history)
    placements, node_usage = history.placements, history.node_usage.copy()
    gone, unknown = 1, 3
    node_usage[gone, :, window.first_day - 3 :] = np.nan
    node = np.where(placements.node == gone, 0, placements.node)
    capacity, allocatable = history.capacity.copy(), history.allocatable.copy()
    capacity[unknown], allocatable[unknown] = np.nan, np.nan
    changed = replace(
        history,
        node_usage=node_usage,
        placements=replace(placements, node=node),
        capacity=capacity,
        allocatable=allocatable,
    )
    played = replay(changed, pods, simple_forecast, seed=0, hot=HOT_SHARE)
    assert played.recording.nodes.tolist() == [0, 2, 4, 5]
    np.testing.assert_array_equal(played.recording.capacity, history.capacity[[0, 2, 4, 5]])
    for forecast in played.forecasts.values():
        assert len(forecast.base) == 4
    for name, playback in played.playbacks.items():
        assert playback.node.max() < 4
        assert len(played.node_shares(name)) == 4
    assert played.figures["forecast"].bound_coverage["cpu"].n == 4 * 7


def test_a_node_that_only_just_came_or_went_takes_part() -> None:
    history, pods = small_cluster()
    window = replay_window(history)
    node_usage = history.node_usage.copy()
    node_usage[1, :, window.first_day :] = np.nan  # measured until four hours before
    node_usage[2, :, : window.first_day] = np.nan
    alone = replace(history.placements, node=np.zeros_like(history.placements.node))
    changed = replace(history, node_usage=node_usage, placements=alone)
    assert record(changed, pods, window, hot=HOT_SHARE).nodes.tolist() == [0, 1, 2, 3, 4, 5]


def test_pods_that_fit_nowhere_and_unmeasured_slots_are_counted() -> None:
    history, pods = small_cluster()
    tight = replace(history, allocatable=history.allocatable * 0.2)
    recording = record(tight, pods, replay_window(tight), hot=HOT_SHARE)
    for rule in (Native(np.random.default_rng(0)), Live()):
        playback = play(recording, rule, seed=0)
        assert playback.unplaced > 0
        assert (playback.node >= 0).all()
    history, pods = small_cluster()
    window = replay_window(history)
    usage = pods.usage.copy()
    usage[0, CPU, window.first_day + 1, 10] = np.nan
    whole, gappy = (record(history, replace(pods, usage=u), window, hot=HOT_SHARE) for u in (pods.usage, usage))
    np.testing.assert_allclose(gappy.load[0, CPU], whole.load[0, CPU], rtol=1e-5)


def test_what_no_replay_can_be_made_of_is_refused() -> None:
    history, pods = small_cluster()
    nothing = replace(history, capacity=history.capacity * np.nan, allocatable=history.allocatable * np.nan)
    with pytest.raises(InputError, match="no node has a known CPU or memory capacity"):
        record(nothing, pods, replay_window(nothing), hot=HOT_SHARE)
    history, pods = small_cluster()
    with pytest.raises(InputError, match="different services"):
        record(history, replace(pods, services=pods.services[::-1]), replay_window(history), hot=HOT_SHARE)
    with pytest.raises(InputError, match="lacks 2026-01-28"):
        record(
            history,
            replace(pods, days=pods.days[:3], present=by_day(np.zeros((len(pods.pods), 144)))),
            replay_window(history),
            hot=HOT_SHARE,
        )


def test_the_page_is_self_contained_and_complete() -> None:
    history, pods = small_cluster()
    played = replay(history, pods, simple_forecast, at=datetime(2026, 1, 20, 4), days=2, hot=HOT_SHARE)
    page = replay_page(played, history)
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert page.count("plotly.js v") == 1
    assert f"{played.figures['native'].hot_share:.1%}" in page
    for label in ("kube-scheduler (requests)", "true future", "fresh model, fresh metrics", "service-"):
        assert label in page
    assert "$" not in page[page.index("<body>") : page.index("<h2>")]
