"""Log bytes from the kubelet's gauge."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats
from trainer.prometheus.kubelet_log_gauge import DEFAULT_ROTATION_CAP_BYTES, container_log_rates, pod_log_rates

NAN = np.nan


def _rates(*sizes: float) -> tuple[list[float], Bools]:
    rates, saturated = container_log_rates(
        np.array([sizes]), step_seconds=300, rotation_cap_bytes=DEFAULT_ROTATION_CAP_BYTES
    )
    return rates[0].tolist(), saturated[0]


def test_growth_is_what_was_logged() -> None:
    rates, saturated = _rates(0, 300, 900, 900)
    assert rates == [1, 2, 0] and not saturated.any()


def test_a_fall_is_a_rotation_and_not_measured() -> None:
    rates, saturated = _rates(1e6, 2e6, 1e5, 1e5 + 300, 1e5 + 600)
    np.testing.assert_array_equal(rates, [1e6 / 300, NAN, 1, 1])
    assert not saturated.any()


def test_a_missing_sample_is_missing_on_both_sides() -> None:
    np.testing.assert_array_equal(_rates(0, NAN, 600, 900)[0], [NAN, NAN, 1])


def test_two_falls_within_half_an_hour_are_a_container_at_its_cap() -> None:
    sizes = 2e7 + 3e3 * np.arange(25.0)
    for fall in (10, 13):
        sizes[fall:] -= 1e7
    rates, saturated = _rates(*sizes)
    # Falls at ticks 9 and 12: windows of 15 minutes to both sides hold both at ticks 9 to 12.
    assert np.flatnonzero(saturated).tolist() == [9, 10, 11, 12]
    assert np.flatnonzero(np.isnan(rates)).tolist() == [9, 10, 11, 12]


def test_two_falls_an_hour_apart_are_two_rotations() -> None:
    sizes = 2e7 + 3e3 * np.arange(30.0)
    for fall in (8, 20):
        sizes[fall:] -= 1e7
    rates, saturated = _rates(*sizes)
    assert not saturated.any() and np.flatnonzero(np.isnan(rates)).tolist() == [7, 19]


def test_a_full_log_that_does_not_grow_is_saturated_and_an_empty_one_is_silent() -> None:
    full, quiet = 0.95 * DEFAULT_ROTATION_CAP_BYTES, 0.1 * DEFAULT_ROTATION_CAP_BYTES
    rates, saturated = _rates(full, full, full)
    assert np.isnan(rates).all() and saturated.all()
    assert _rates(quiet, quiet)[0] == [0]
    assert _rates(full - 300, full)[0] == [1]  # still growing


def test_a_pod_is_the_sum_of_its_containers_while_all_are_measured() -> None:
    gauge: Floats = np.array([[0, 300, 600, 900.0], [0, 600, 300, 600.0], [NAN, NAN, NAN, 100.0], [NAN] * 4])
    rates, _ = container_log_rates(gauge, step_seconds=300, rotation_cap_bytes=1e9)
    pods = pod_log_rates(rates, gauge, np.array([0, 0, 0, 1]), 2)
    np.testing.assert_array_equal(pods, [[3, NAN, NAN], [NAN] * 3])
