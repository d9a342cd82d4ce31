"""All features of the model, in the order of its columns."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats32
from forecast.half_hours import dates, lags, levels, neighbours, seasons, unsteadiness
from forecast.half_hours.midnight import Midnight

FEATURES = (
    *lags.FEATURES,
    *seasons.FEATURES,
    *levels.FEATURES,
    *unsteadiness.FEATURES,
    *neighbours.FEATURES,
    *dates.FEATURES,
)


def table(midnight: Midnight) -> Floats32:
    """All that is known about each half hour of the coming day: (n_series, 48, n_features)."""
    columns = np.empty((*midnight.usual.shape, len(FEATURES)), dtype=np.float32)
    for index, feature in enumerate(FEATURES):
        columns[..., index] = feature.of(midnight)
        if feature.is_level:
            columns[..., index] -= midnight.usual
    return columns
