"""Seven local days from today; what is over, or never comes, weighs nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from cluster.predicted.horizon import Horizon, start_of_slot
from forecast.calendar import Calendar

BERLIN = Calendar("Europe/Berlin")


def test_the_horizon_begins_with_the_local_day_and_errors_fade_with_its_hours() -> None:
    horizon = Horizon.at(datetime(2026, 6, 1, 22, 40, tzinfo=UTC), BERLIN)  # 00:40 in Berlin
    assert horizon.today == date(2026, 6, 2)
    assert horizon.days[-1] == date(2026, 6, 8)
    assert horizon.slot == 1
    np.testing.assert_array_equal(horizon.weights(), [0.0] + [1.0] * 335)
    horizon = Horizon.at(datetime(2026, 3, 28, 12, tzinfo=UTC), BERLIN)  # clocks go forward on the 29th at 02:00
    left_out = np.flatnonzero(horizon.weights() == 0)
    np.testing.assert_array_equal(left_out[left_out >= 48], [48 + 4, 48 + 5])
    autumn = Horizon.at(datetime(2026, 10, 24, 22, 30, tzinfo=UTC), BERLIN)  # and back on the 25th
    assert autumn.weights().sum() == 335
    start = start_of_slot(date(2026, 6, 1), 41, BERLIN.zone)
    assert start.isoformat() == "2026-06-01T20:30:00+02:00"
    assert Horizon.at(start, BERLIN).start_of(48 + 41) == start_of_slot(date(2026, 6, 2), 41, BERLIN.zone)
    horizon = Horizon.at(datetime(2026, 6, 1, 10, tzinfo=UTC), Calendar())
    fading = horizon.fading(12)
    assert fading[20] == 1.0
    assert fading[32] == pytest.approx(0.5)
    assert not fading[:20].any()
