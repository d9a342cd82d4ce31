"""What people see of a Job owner: its pods by the clock, however many of them happen to run now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.degradation import Level
from cluster.predicted.pod_profiles import Profiles
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from scorer.forecasting import service_usage_forecast
from tests.scorer.live_cluster import model, moment

NIGHTLY = ServiceKey("shop", "CronJob", "nightly")


@pytest.mark.parametrize("running", [0.0, 1.0, 8.0])
def test_a_nightly_job_is_forecast_at_night_whatever_runs_now(running: float) -> None:
    dated, day_type = model().replicas_dated.copy(), model().replicas_day_type.copy()
    for replicas in (dated, day_type):
        replicas[5] = 0.0
        replicas[5, :, 4:10] = 2.0
    known = replace(
        model(), services=(*model().services[:5], NIGHTLY), replicas_dated=dated, replicas_day_type=day_type
    )
    found = service_usage_forecast(
        NIGHTLY, [], running, (1.0, 1.0), Profiles(known), moment(3.0), next(iter(Level)), "v1", None
    )
    expected = np.asarray(found.curves[CPU].expected).reshape(-1, 48)[-7:]  # two days before today come first
    of_one = known.usage(known.calendar.horizon(known.first_day, 7))[5, CPU]
    np.testing.assert_allclose(expected[:, 4:10], 2 * of_one[:, 4:10], rtol=1e-5)
    assert not expected[:, :4].any()
    assert not expected[:, 10:].any()
