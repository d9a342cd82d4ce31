"""Young and new services: shape from their like, level from themselves, else from their requests."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from base.arrays import Floats
from forecast.calendar import Calendar
from forecast.cold_start import borrow_history, request_ratios
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

DAYS = Calendar().describe([date(2026, 5, 4) + timedelta(days=i) for i in range(28)])
EVENING = 1.0 + 3.0 * (np.arange(48) >= 36)


def services(n: int, namespace: str = "shop") -> tuple[ServiceKey, ...]:
    return tuple(ServiceKey(namespace, "Deployment", f"s{i}") for i in range(n))


def cluster(n_services: int, levels: Floats) -> Floats:
    """All resources of every service: level x evening shape."""
    shape = np.tile(EVENING, (28, 1))
    return levels[:, None, None, None] * np.ones((n_services, len(RESOURCES), 1, 1)) * shape


def test_a_service_without_a_day_gets_its_likes_usage_per_requested_core() -> None:
    usage = cluster(5, np.array([1.0, 2.0, 3.0, 4.0, np.nan]))
    requests = np.array([[2.0, 1.0], [4.0, 2.0], [6.0, 3.0], [8.0, 4.0], [10.0, 5.0]])
    ratios = request_ratios(usage, requests, DAYS)
    borrowed = borrow_history(usage, requests, services(5), DAYS, ratios)
    np.testing.assert_allclose(borrowed.usage[4, CPU, -1], 5.0 * EVENING)
    np.testing.assert_allclose(borrowed.usage[4, MEMORY, -1], 5.0 * EVENING)


def test_a_service_of_three_days_keeps_them_and_borrows_the_shape_at_its_own_level() -> None:
    usage = cluster(5, np.array([1.0, 2.0, 3.0, 4.0, 7.0]))
    usage[4, :, :25] = np.nan
    requests = np.full((5, 2), np.nan)
    borrowed = borrow_history(usage, requests, services(5), DAYS, request_ratios(usage, requests, DAYS))
    np.testing.assert_allclose(borrowed.usage[4, CPU], np.tile(7.0 * EVENING, (28, 1)))
    assert borrowed.own_days[4, CPU] == 3 and borrowed.young[4, CPU] and not borrowed.young[0, CPU]


def test_own_evidence_soon_outweighs_the_request() -> None:
    usage = cluster(5, np.array([1.0, 1.0, 1.0, 1.0, 1.0]))
    usage[4, :, :25] = np.nan
    requests = np.array([[1.0, 1.0]] * 4 + [[100.0, 100.0]])
    borrowed = borrow_history(usage, requests, services(5), DAYS, request_ratios(usage, requests, DAYS))
    assert 1.0 < borrowed.usage[4, CPU, 0, 0] < 2.0


def test_a_gap_in_the_life_of_a_service_stays_a_gap() -> None:
    usage = cluster(5, np.arange(1.0, 6.0))
    usage[2, :, 10:12] = np.nan
    requests = np.ones((5, 2))
    borrowed = borrow_history(usage, requests, services(5), DAYS, request_ratios(usage, requests, DAYS))
    assert np.isnan(borrowed.usage[2, CPU, 10:12]).all()
    np.testing.assert_array_equal(borrowed.usage[0], usage[0])


def test_the_ratio_is_a_median_so_that_one_tiny_request_does_not_set_it() -> None:
    usage = cluster(5, np.ones(5))
    requests = np.array([[1.0, 1.0]] * 4 + [[0.001, 0.001]])
    assert request_ratios(usage, requests, DAYS)[CPU, 0, 0] == pytest.approx(1.0)


def test_a_resource_nobody_measures_stays_unknown() -> None:
    usage = cluster(5, np.ones(5))
    usage[:, 4] = np.nan
    requests = np.ones((5, 2))
    ratios = request_ratios(usage, requests, DAYS)
    assert np.isnan(ratios[4]).all()
    assert np.isnan(borrow_history(usage, requests, services(5), DAYS, ratios).usage[:, 4]).all()


def test_services_launched_together_tell_how_far_the_launch_has_to_go() -> None:
    # Twelve services climb at a tenth, a fifth and two fifths of what they will use; their requests mislead each way.
    rng = np.random.default_rng(3)
    levels = np.exp(rng.normal(0, 1, 40))
    requests = np.repeat((levels * np.exp(0.5 * rng.normal(size=40)))[:, None], 2, axis=1)
    usage = cluster(40, levels)
    usage[28:, :, :25] = np.nan
    usage[28:, :, 25:] *= np.array([0.1, 0.2, 0.4])[:, None]
    borrowed = borrow_history(usage, requests, services(40), DAYS, request_ratios(usage, requests, DAYS))
    found = borrowed.usage[28:, CPU, -1].mean(axis=1) / (levels[28:] * EVENING.mean())
    assert 0.6 < np.exp(np.log(found).mean()) < 1.4
    assert np.log(found).std() < 0.3
    assert (borrowed.level_error[28:, CPU] > 0.2).all() and (borrowed.level_error[:28] == 0).all()
