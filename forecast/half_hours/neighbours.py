"""What the groups of a series did yesterday, as features."""

from __future__ import annotations

from functools import partial

import numpy as np

from base.arrays import AnyFloats
from forecast.half_hours.feature import Feature
from forecast.half_hours.groups import GROUPINGS
from forecast.half_hours.midnight import Midnight


def _move(grouping: int, midnight: Midnight) -> AnyFloats:
    return np.asarray(midnight.moves.mean[grouping])


def _spread(grouping: int, midnight: Midnight) -> AnyFloats:
    return np.asarray(midnight.moves.spread[grouping])


def _count(grouping: int, midnight: Midnight) -> AnyFloats:
    return midnight.all_day(midnight.moves.count[grouping])


FEATURES = tuple(
    Feature(f"{what}_of_{name}", partial(of, grouping), is_level=False)
    for grouping, name in enumerate(GROUPINGS)
    for what, of in (("move", _move), ("spread", _spread), ("count", _count))
)
