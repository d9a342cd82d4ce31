"""Quantiles of half hours on the first day and on later ones."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from forecast.model import HALF_HOUR_LEVELS, PeakModel
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
