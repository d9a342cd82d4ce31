"""The share of the gap that was closed, and when there is none to speak of."""

from __future__ import annotations

import pytest

from scorer.replay.report import RuleFigures, gap_closed


def figures(hot: float, **peak_cv: float) -> RuleFigures:
    return RuleFigures(hot_share=hot, peak_cv=peak_cv, p99_peak={}, max_peak={}, unplaced=0)


def test_the_gap_is_measured_from_native_to_the_true_future() -> None:
    closed = gap_closed(figures(0.10, cpu=0.3), figures(0.03, cpu=0.2), figures(0.02, cpu=0.1))
    assert closed["hot_share"] == pytest.approx(0.875)
    assert closed["peak_cv"] == {"cpu": pytest.approx(0.5)}


def test_a_gap_under_half_a_point_is_null() -> None:
    closed = gap_closed(figures(0.006, cpu=0.104), figures(0.003, cpu=0.1), figures(0.002, cpu=0.1))
    assert closed == {"hot_share": None, "peak_cv": {"cpu": None}}


def test_a_resource_that_another_rule_left_unused_is_null() -> None:
    closed = gap_closed(figures(0.1, cpu=0.3, disk=0.2), figures(0.1, disk=0.1), figures(0.1, cpu=0.1, disk=0.1))
    assert closed["peak_cv"] == {"cpu": None, "disk": pytest.approx(1.0)}
