"""Curves of days besides the expected one: a quantile of each half hour, days scaled to a quantile of their peak."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from forecast.model import HALF_HOUR_LEVELS, PEAK_QUANTILES, PeakModel
from testing.fitted_models import fitted
from tests.scorer.replay.small_cluster import small_cluster


def small_model() -> PeakModel:
    return fitted(small_cluster()[0])


def test_a_quantile_of_half_hours_is_the_published_one_and_moves_with_the_expected_curve() -> None:
    model = small_model()
    days = (model.first_day, model.first_day + timedelta(days=5))
    expected = model.usage(days)
    for at, level in enumerate(HALF_HOUR_LEVELS):
        found = model.usage_at(level, days)
        np.testing.assert_allclose(found[:, :, 0], model.usage_quantiles[:, :, at])
        moved = found[:, :, 0] + expected[:, :, 1] - expected[:, :, 0]
        np.testing.assert_allclose(found[:, :, 1], np.maximum(moved, 0.0))
    np.testing.assert_array_equal(model.half_hour_quantiles(days[1])[:, :, -1], model.usage_at(0.99, days[1:])[:, :, 0])


def test_a_raised_day_reaches_its_peak_and_keeps_its_shape() -> None:
    model = small_model()
    days = tuple(model.first_day + timedelta(days=n) for n in (0, 3, 20))
    expected = model.usage(days)
    for at, quantile in enumerate(PEAK_QUANTILES):
        raised = model.usage_to_peaks(quantile, days)
        peaks = np.stack([model.service_peaks(day)[:, :, at] for day in days], axis=2)
        used = (expected > 0).any(axis=3) & np.isfinite(peaks)
        assert used.any()
        np.testing.assert_allclose(raised.max(axis=3)[used], peaks[used])
        shape = raised / raised.max(axis=3, keepdims=True)
        np.testing.assert_allclose(shape[used], (expected / expected.max(axis=3, keepdims=True))[used])
