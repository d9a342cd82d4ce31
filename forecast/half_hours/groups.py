"""What the groups did to which a series belongs: its resource, namespace, kind of owner, size, and hour of the peak.

One series shows little of a day that moves all; the mean over its neighbours does. With it go their spread, which says
how far they agree, and their number, which says how much the mean may be believed (mlforecast's pooled statistics).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.fit_inputs import Series
from forecast.service_key import ServiceKey

GROUPINGS = ("resource", "namespace", "owner_kind", "size", "peak_hour")

_HOURS_OF_A_CLASS = 3
_LARGEST_MOVE = 10.0
"""In units: one series that burst does not move its group."""


@dataclass(frozen=True, slots=True)
class SeriesGroups:
    """The groups of some series, all within a resource.

    resource   : (n_series,)
    namespace  : (n_series,) a number for each
    owner_kind : (n_series,)
    """

    resource: Ints
    namespace: Ints
    owner_kind: Ints

    @classmethod
    def of(cls, series: Series, services: tuple[ServiceKey, ...]) -> SeriesGroups:
        """Those that the names of services say."""
        names, kinds = ([getattr(key, part) for key in services] for part in ("namespace", "kind"))
        numbers = [np.unique(part, return_inverse=True)[1][series.service] for part in (names, kinds)]
        return cls(series.resource, *numbers)

    @classmethod
    def one(cls, n_series: int) -> SeriesGroups:
        """One group of all series, where nothing is known of their names."""
        nothing = np.zeros(n_series, dtype=np.int64)
        return cls(nothing, nothing, nothing)

    def take(self, rows: Ints) -> SeriesGroups:
        """Those of some of the series."""
        return SeriesGroups(self.resource[rows], self.namespace[rows], self.owner_kind[rows])


@dataclass(frozen=True, slots=True)
class GroupMoves:
    """Yesterday against the mean of the week, by half hour, over the series of a group.

    mean, spread : (n_groupings, n_series, 48) in units
    count        : (n_groupings, n_series) logarithm of the number of series in the group
    """

    mean: Floats32
    spread: Floats32
    count: Floats32

    def take(self, rows: Ints) -> GroupMoves:
        """Those of some of the series."""
        return GroupMoves(self.mean[:, rows], self.spread[:, rows], self.count[:, rows])


def group_moves(known: AnyFloats, unit: AnyFloats, groups: SeriesGroups) -> GroupMoves:
    """What the groups did on the last of these days.

    known : (n_series, n_days, 48) base units, no gaps; unit: (n_series,) > 0
    """
    week = known[:, -7:]
    usual = week.mean(axis=1)
    move = np.clip((week[:, -1] - usual) / unit[:, None], -_LARGEST_MOVE, _LARGEST_MOVE)
    size = _size_class(usual.mean(axis=1, dtype=np.float64), groups.resource)
    hour = usual.argmax(axis=1) * 24 // (SLOTS_PER_DAY * _HOURS_OF_A_CLASS)
    parts = (np.zeros_like(groups.resource), groups.namespace, groups.owner_kind, size, hour)
    found = [_moves_by(_numbered(groups.resource, part), move) for part in parts]
    mean, spread, count = (np.stack(one).astype(np.float32) for one in zip(*found, strict=True))
    return GroupMoves(mean, spread, count)


def _size_class(level: Floats, resource: Ints) -> Ints:
    """Powers of ten to the median of the resource: (n_series,)."""
    classes = np.zeros(len(level), dtype=np.int64)
    for one in np.unique(resource):
        rows = np.flatnonzero((resource == one) & (level > 0))
        if len(rows):
            classes[rows] = np.log10(level[rows] / np.median(level[rows])).round(6).round()
    return classes


def _numbered(resource: Ints, part: Ints) -> Ints:
    """The same number for the same pair: (n_series,)."""
    span = int(part.max() - part.min()) + 1
    return np.asarray(np.unique(resource * span + part - part.min(), return_inverse=True)[1], dtype=np.int64)


def _moves_by(group: Ints, move: AnyFloats) -> tuple[Floats, Floats, Floats]:
    n_series = len(group)
    members = csr_array((np.ones(n_series), (group, np.arange(n_series))))
    count = np.bincount(group).astype(np.float64)
    mean = (members @ move) / count[:, None]
    spread = np.sqrt(np.maximum((members @ move**2) / count[:, None] - mean**2, 0.0))
    return mean[group], spread[group], np.log(count)[group]
