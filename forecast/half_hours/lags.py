"""The same half hour on days before, and its neighbours on the two that say most."""

from __future__ import annotations

from functools import partial

import numpy as np

from base.arrays import AnyFloats
from forecast.half_hours.feature import Feature
from forecast.half_hours.midnight import Midnight

_DAYS = (1, 2, 3, 4, 5, 6, 7, 14, 21, 28)
_NEIGHBOURS = (-2, -1, 1, 2)
"""Half hours: what comes an hour late on one day comes an hour early on another."""


def _lag(days: int, midnight: Midnight) -> AnyFloats:
    return midnight.days_back(days)


def _neighbour(days: int, later: int, midnight: Midnight) -> AnyFloats:
    return np.roll(midnight.days_back(days), -later, axis=1)


FEATURES = (
    *(Feature(f"lag_{days}", partial(_lag, days)) for days in _DAYS),
    *(
        Feature(f"lag_{days}_slot_{later:+d}", partial(_neighbour, days, later))
        for days in (1, 7)
        for later in _NEIGHBOURS
    ),
)
