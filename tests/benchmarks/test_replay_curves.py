"""Curves that the replay places by besides the shipped one."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from benchmarks.replay_curves import raised_to_peaks
from forecast.model import PEAK_QUANTILES
from testing.fitted_models import fitted
from tests.scorer.replay.small_cluster import small_cluster


def test_a_raised_day_reaches_its_peak_and_keeps_its_shape() -> None:
    model = fitted(small_cluster()[0])
    days = tuple(model.first_day + timedelta(days=n) for n in (0, 3, 20))
    expected = model.usage(days)
    for at, quantile in enumerate(PEAK_QUANTILES):
        raised = raised_to_peaks(model, quantile, days)
        peaks = np.stack([model.service_peaks(day)[:, :, at] for day in days], axis=2)
        used = (expected > 0).any(axis=3) & np.isfinite(peaks)
        assert used.any()
        np.testing.assert_allclose(raised.max(axis=3)[used], peaks[used])
        shape = raised / raised.max(axis=3, keepdims=True)
        np.testing.assert_allclose(shape[used], (expected / expected.max(axis=3, keepdims=True))[used])
