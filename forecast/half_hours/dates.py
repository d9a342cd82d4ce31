"""Which half hour, of which day, of which resource, and how long the series is known."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats
from forecast.calendar import SLOTS_PER_DAY
from forecast.half_hours.feature import Feature
from forecast.half_hours.midnight import Midnight


def _constant(value: float, midnight: Midnight) -> AnyFloats:
    return np.full_like(midnight.usual, value)


def _slot(midnight: Midnight) -> AnyFloats:
    return np.broadcast_to(np.arange(SLOTS_PER_DAY, dtype=np.float32), midnight.usual.shape)


FEATURES = (
    Feature("slot", _slot, is_level=False),
    Feature("weekday", lambda m: _constant(m.weekday, m), is_level=False),
    Feature("day_type", lambda m: _constant(m.day_type, m), is_level=False),
    Feature("resource", lambda m: m.all_day(m.resource), is_level=False),
    Feature("days_known", lambda m: _constant(m.known.shape[1], m), is_level=False),
)
