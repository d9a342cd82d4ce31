"""A leak is seen through noise, and noise is not taken for one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testing.soak.figures import Histogram, growth, histogram, thirds


def test_a_leak_is_seen_through_noise() -> None:
    rng = np.random.default_rng(0)
    days = 300 * (1 + 0.10 / 7 * np.arange(7)) + rng.normal(0, 0.5, 7)
    found = growth(days.tolist())
    assert found.a_week == pytest.approx(0.10, abs=0.02)
    assert found.is_certain_above > 0.05
    first, last = thirds(days.tolist())
    assert last / first > 1.05


def test_noise_is_no_leak() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        assert growth(rng.normal(300, 6, 6).tolist()).is_certain_above < 0.05


def test_of_two_days_nothing_is_certain() -> None:
    found = growth([300.0, 330.0])
    assert found.a_week > 0.5 and math.isinf(found.error) and found.is_certain_above == -math.inf


def test_a_flat_line_has_no_error() -> None:
    found = growth([200.0] * 5)
    assert (found.level, found.a_week, found.error) == (200.0, 0.0, 0.0)


_TEXT = """
# TYPE took_seconds histogram
took_seconds_bucket{stage="bind",le="0.1"} 2.0
took_seconds_bucket{stage="bind",le="1.0"} 4.0
took_seconds_bucket{stage="bind",le="+Inf"} 4.0
took_seconds_bucket{stage="pop",le="0.1"} 1.0
took_seconds_bucket{stage="pop",le="1.0"} 1.0
took_seconds_bucket{stage="pop",le="+Inf"} 1.0
took_seconds_bucket_other{le="0.1"} 7.0
"""


def test_quantiles_are_those_of_histogram_quantile() -> None:
    bind = histogram(_TEXT, "took_seconds", stage="bind")
    assert bind.n == 4
    assert bind.quantile(0.5) == pytest.approx(0.1)
    assert bind.quantile(0.75) == pytest.approx(0.55)
    assert histogram(_TEXT, "took_seconds").n == 5
    assert math.isnan(histogram(_TEXT, "took_seconds", stage="none").quantile(0.5))


def test_what_has_come_since_and_a_process_that_was_started_anew() -> None:
    earlier = Histogram({0.1: 3.0, math.inf: 3.0})
    assert Histogram({0.1: 4.0, math.inf: 5.0}).since(earlier).counts == {0.1: 1.0, math.inf: 2.0}
    anew = Histogram({0.1: 1.0, math.inf: 1.0})
    assert anew.since(earlier) == anew
