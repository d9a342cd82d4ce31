"""The share of the gap that was closed, and when there is none to speak of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scorer.replay.remarks import no_gap_remarks
from scorer.replay.report import RuleFigures, gap_closed, no_gap


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


def test_a_gap_within_the_noise_of_the_days_is_null_and_says_so() -> None:
    native, ours, oracle = figures(0.10, log=0.463), figures(0.08, log=0.471), figures(0.02, log=0.456)
    native = replace(native, daily_peak_cv={"log": (0.48, 0.44, 0.47)})
    oracle = replace(oracle, daily_peak_cv={"log": (0.45, 0.47, 0.448)})
    assert gap_closed(native, ours, oracle)["peak_cv"] == {"log": None}
    why = no_gap(native, ours, oracle)
    assert why["hot_share"] is None
    assert "within the noise of the days" in why["peak_cv"]["log"]
    assert no_gap_remarks(why, ["cpu", "log"]) == [f"– log CV: {why['peak_cv']['log']}"]


def test_a_rule_that_the_oracle_does_not_beat_has_its_reason() -> None:
    same = figures(0.1, log=0.463)
    why = no_gap(same, same, same)
    assert why["peak_cv"]["log"] == "the true future gains nothing over native (0.463 against 0.463)"
    assert no_gap_remarks(why, ["log"])[0].startswith("– hot: the true future gains nothing")
