"""Other curves than placement's, for the same pods: what is measured of a service alone changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.replay_curves import LEVELS, other_curves
from forecast.hot_share import HOT_SHARE
from scorer.replay.preparation import forecast_with, prepare
from testing.fitted_models import fitted
from tests.scorer.replay.small_cluster import small_cluster


def test_a_higher_quantile_is_a_higher_curve_and_jobs_and_the_expected_load_stay() -> None:
    prepared = prepare(*small_cluster(), forecast_with(fitted), hot=HOT_SHARE)
    ours = prepared.forecasts["forecast"]
    n_services = len(ours.mean)
    first_is_a_job = np.where(np.arange(n_services) == 0, 600.0, np.nan)
    ours = replace(ours, run_seconds=first_is_a_job)
    found = dict(other_curves(ours, prepared.window, prepared.recording))
    for low, high in (
        (f"half hours, {LEVELS[0]:g}", f"half hours, {LEVELS[1]:g}"),
        ("daily peak, 0.5", "daily peak, 0.95"),
    ):
        assert (found[high].curves >= found[low].curves - 1e-9).all()
        assert (found[high].curves > found[low].curves).any()
    for one in found.values():
        np.testing.assert_array_equal(one.mean, ours.mean)
        np.testing.assert_array_equal(one.curves[0, :, 0], ours.mean[0])
