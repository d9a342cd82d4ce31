"""One number that is known at a midnight about each half hour of the coming day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from base.arrays import AnyFloats
from forecast.half_hours.midnight import Midnight


@dataclass(frozen=True, slots=True)
class Feature:
    """A named column of the model.

    of       : from a midnight to (n_series, 48); usage and spreads in units
    is_level : whether it counts from what is usual of the half hour, as usage does; spreads and dates stand for
               themselves
    """

    name: str
    of: Callable[[Midnight], AnyFloats]
    is_level: bool = True
