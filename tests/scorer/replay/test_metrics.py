"""Figures of a replay against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from forecast.resources import CPU, DISK, MEMORY
from scorer.replay.remarks import no_gap_remarks
from scorer.replay.replay_figures import (
    RuleFigures,
    daily_peaks,
    figures_of,
    gap_closed,
    hot_node_slots,
    no_gap,
    peak_variation,
    shares,
)


def figures(hot: float, **peak_cv: float) -> RuleFigures:
    return RuleFigures(hot_share=hot, peak_cv=peak_cv, p99_peak={}, max_peak={}, unplaced=0)


def test_a_gap_is_measured_from_native_to_the_true_future_or_null_with_its_reason() -> None:
    closed = gap_closed(figures(0.10, cpu=0.3), figures(0.03, cpu=0.2), figures(0.02, cpu=0.1))
    assert closed["hot_share"] == pytest.approx(0.875)
    assert closed["peak_cv"] == {"cpu": pytest.approx(0.5)}
    closed = gap_closed(figures(0.006, cpu=0.104), figures(0.003, cpu=0.1), figures(0.002, cpu=0.1))
    assert closed == {"hot_share": None, "peak_cv": {"cpu": None}}
    closed = gap_closed(figures(0.1, cpu=0.3, disk=0.2), figures(0.1, disk=0.1), figures(0.1, cpu=0.1, disk=0.1))
    assert closed["peak_cv"] == {"cpu": None, "disk": pytest.approx(1.0)}
    native, ours, oracle = figures(0.10, log=0.463), figures(0.08, log=0.471), figures(0.02, log=0.456)
    native = replace(native, daily_peak_cv={"log": (0.48, 0.44, 0.47)})
    oracle = replace(oracle, daily_peak_cv={"log": (0.45, 0.47, 0.448)})
    assert gap_closed(native, ours, oracle)["peak_cv"] == {"log": None}
    why = no_gap(native, ours, oracle)
    assert why["hot_share"] is None
    assert "within the noise of the days" in why["peak_cv"]["log"]
    assert no_gap_remarks(why, ["cpu", "log"]) == [f"– log CV: {why['peak_cv']['log']}"]
    same = figures(0.1, log=0.463)
    why = no_gap(same, same, same)
    assert why["peak_cv"]["log"] == "the true future gains nothing over native (0.463 against 0.463)"
    assert no_gap_remarks(why, ["log"])[0].startswith("– hot: the true future gains nothing")


def two_nodes() -> Floats:
    """(2, 5, 96) share of capacity; two days."""
    share = np.full((2, 5, 96), np.nan)
    share[:, CPU] = 0.2
    share[:, MEMORY] = 0.95
    share[:, DISK] = 0.1
    share[0, CPU, 40] = 0.9
    share[1, CPU, 40] = 0.6
    share[1, DISK, 70:72] = 0.85
    return share


def test_figures_by_hand_are_shares_of_each_nodes_own_capacity() -> None:
    assert not hot_node_slots(np.full((1, 5, 48), 0.8), 0.8).any()
    figures = figures_of(two_nodes(), unplaced=2, coverage={}, hot=0.8)
    assert figures.hot_share == pytest.approx(3 / 192)
    assert figures.daily_hot_share == pytest.approx([1 / 96, 2 / 96])
    # day one: peaks 0.9 and 0.6, deviation 0.15 of mean 0.75; day two: equal peaks
    assert figures.peak_cv["cpu"] == pytest.approx(0.2 / 2)
    assert figures.max_peak["cpu"] == 0.9
    assert set(figures.peak_cv) == {"cpu", "memory", "disk"}
    assert figures.to_json()["unplaced"] == 2
    load = np.zeros((2, 1, 48))
    load[:, 0, 7] = [2.0, 8.0]
    peaks = daily_peaks(shares(load, np.array([[4.0], [16.0]])))
    np.testing.assert_allclose(peaks[:, 0, 0], [0.5, 0.5])
    assert peak_variation(peaks)[0] == 0
