"""Error, coverage and spread of a day, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import time

import numpy as np
import pytest

from forecast.resources import CPU, DISK, LOG, MEMORY, RESOURCES
from forecast_scheduler.reports.peaks_report.day_figures import DayReading, hottest_nodes, score_day, spread_of
from tests.forecast_scheduler.reports.peaks_report.nights import history

SHAPE = (3, len(RESOURCES), 48)
CAPACITY = np.full(SHAPE[:2], 10.0)


def reading() -> DayReading:
    """Two cores expected everywhere, 4 at 20:00, bound 5."""
    mean = np.full(SHAPE, 2.0, dtype=np.float32)
    mean[:, :, 40] = 4.0
    peaks = np.stack([np.full(SHAPE[:2], 4.0), np.full(SHAPE[:2], 5.0)], axis=-1)
    none = np.zeros((0, len(RESOURCES), 48), dtype=np.float32)
    return DayReading(mean, mean + 1, peaks, np.ones(SHAPE[:2], dtype=np.bool_), none, none)


def test_error_and_coverage_are_of_nodes_that_can_be_judged() -> None:
    actual = np.full(SHAPE, 3.0)
    actual[0, CPU, 40] = 5.5  # above the bound
    actual[1, CPU] = np.nan  # not measured: not judged
    score = score_day(reading(), actual, CAPACITY)
    assert score.n_nodes[CPU] == 2 and score.n_nodes[DISK] == 3
    assert score.coverage[CPU] == pytest.approx(0.5) and score.coverage[DISK] == 1
    # 47 half hours of 0.1, one of 0.15 on node 0 and of 0.1 (3 where 4 was expected) on node 2
    assert score.error[CPU] == pytest.approx((95 * 0.1 + 0.15) / 96)
    assert score.bias[CPU] == pytest.approx((94 * 0.1 + 0.15 - 0.1) / 96)
    understood = np.ones(SHAPE[:2], dtype=np.bool_)
    understood[2, CPU] = False
    score = score_day(replace(reading(), understood=understood), np.full(SHAPE, 3.0), CAPACITY)
    assert (score.n_nodes[CPU], score.n_nodes[LOG], score.left_out) == (2, 3, 1)
    capacity = CAPACITY.copy()
    capacity[:, LOG] = np.nan
    score = score_day(reading(), np.full(SHAPE, 3.0), capacity)
    assert np.isnan(score.error[LOG]) and score.coverage[LOG] == 1


def test_spread_and_hot_share_of_every_day() -> None:
    usage = np.full((2, len(RESOURCES), 2, 48), 2.0, dtype=np.float32)
    usage[0, CPU, 0, 40] = 9.0
    usage[1, CPU, 0, 40] = 3.0
    usage[:, CPU, 1] = np.nan
    usage[:, MEMORY, :, 0] = 9.5  # high, but memory makes no node hot
    known = replace(
        history(),
        days=history().days[:2],
        nodes=("a", "b"),
        node_usage=usage,
        capacity=np.full((2, len(RESOURCES)), 10.0),
    )
    spread = spread_of(known, 0.8)
    assert spread.variation[CPU, 0] == pytest.approx(0.3 / 0.6)  # peaks 0.9 and 0.3
    assert np.isnan(spread.variation[CPU, 1]) and spread.variation[DISK, 1] == 0
    assert spread.hot.tolist() == pytest.approx([1 / 96, 0])


def test_the_hottest_node_is_the_one_closest_to_any_capacity_that_counts() -> None:
    peaks = np.stack([np.full(SHAPE[:2], 4.0), np.full(SHAPE[:2], 5.0)], axis=-1)
    peaks[1, LOG] = 9.0, 12.0
    peaks[2, MEMORY] = 9.9, 10.0
    peaks[0] = np.nan  # nothing is predicted
    first, second = hottest_nodes(replace(reading(), node_peaks=peaks), CAPACITY)
    assert (first.node, first.resource, first.share, first.bound, first.at) == (1, LOG, 0.9, 12.0, time(20, 0))
    assert (second.node, second.share) == (2, 0.4)


def test_spread_and_hot_share_are_of_the_capacity_of_each_day() -> None:
    usage = np.full((2, len(RESOURCES), 2, 48), 9.0, dtype=np.float32)
    usage[0, :, 1] = 18.0  # of 20 on the first day, of 40 on the second
    then = np.full((2, len(RESOURCES), 2), 20.0)
    then[0, :, 1] = 40.0
    known = replace(history(), days=history().days[:2], nodes=("a", "b"), node_usage=usage, capacity=then[:, :, 1])
    spread = spread_of(replace(known, daily_capacity=then), 0.8)
    assert spread.hot.tolist() == [0, 0] and spread.variation[CPU].tolist() == pytest.approx([0, 0])
    assert spread_of(replace(known, capacity=then[:, :, 0]), 0.8).hot.tolist() == [0, 0.5]
