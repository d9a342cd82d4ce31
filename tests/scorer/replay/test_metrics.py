"""Figures of a replay against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.arrays import Floats
from forecast.resources import CPU, DISK, MEMORY
from scorer.replay.metrics import daily_peaks, hot_node_slots, peak_variation, shares
from scorer.replay.report import figures_of


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


def test_exactly_80_percent_is_not_hot() -> None:
    assert not hot_node_slots(np.full((1, 5, 48), 0.8)).any()


def test_figures_by_hand() -> None:
    figures = figures_of(two_nodes(), unplaced=2, coverage={})
    assert figures.hot_share == pytest.approx(3 / 192)
    assert figures.daily_hot_share == pytest.approx([1 / 96, 2 / 96])
    # day one: peaks 0.9 and 0.6, deviation 0.15 of mean 0.75; day two: equal peaks
    assert figures.peak_cv["cpu"] == pytest.approx(0.2 / 2)
    assert figures.max_peak["cpu"] == 0.9
    assert set(figures.peak_cv) == {"cpu", "memory", "disk"}
    assert figures.to_json()["unplaced"] == 2


def test_peaks_are_shares_of_each_nodes_own_capacity() -> None:
    load = np.zeros((2, 1, 48))
    load[:, 0, 7] = [2.0, 8.0]
    peaks = daily_peaks(shares(load, np.array([[4.0], [16.0]])))
    np.testing.assert_allclose(peaks[:, 0, 0], [0.5, 0.5])
    assert peak_variation(peaks)[0] == 0
