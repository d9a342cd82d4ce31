"""What a challenger knows at a midnight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import Days
from forecast.online_calibration import daily_peaks

QUANTILES = (0.5, 0.95)


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """The days before an origin.

    usage    : (n_series, n_days, 48) half-hour means, NaN = not measured
    resource : (n_series,) index of the resource
    days     : the calendar of these days
    target   : the day to forecast (length 1)
    """

    usage: AnyFloats
    resource: Ints
    days: Days
    target: Days

    @property
    def peaks(self) -> Floats:
        """(n_series, n_days) highest half hour of each day, NaN = not measured."""
        return daily_peaks(self.usage)

    def by_resource(self) -> Iterator[Ints]:
        """The rows of each resource in turn: each gets a model of its own."""
        for resource in np.unique(self.resource):
            yield np.flatnonzero(self.resource == resource)
