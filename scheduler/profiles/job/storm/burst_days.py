"""What came at the same time on most days is expected at that time. Pure: pods per minute in, pods per minute out.

day 1  ....|....        minutes around which enough pods came ---+
day 2  ...|.....        ... on most days that were seen ---------+--> a period: as many pods as on the median day,
day 3  .........                                                      minute by minute as they came on that day
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from base.arrays import Bools, Ints

AROUND: Final = 5
"""Minutes by which days may differ."""

_FEWEST_DAYS: Final = 2


def expected_arrivals(came: Ints, seen: Bools, min_pods: int, usual: Bools | None = None) -> Iterator[tuple[int, Ints]]:
    """The first minute of each period, and the pods that are expected in each of its minutes.

    came     : (n_days, n_minutes) pods, the latest day first
    seen     : (n_days, n_minutes) whether the bursts were observed then
    min_pods : within AROUND minutes before or after
    usual    : (n_minutes,) whether the model saw as many start at that time of day: then one day is enough
    """
    fewest = _FEWEST_DAYS if usual is None else np.where(usual, 1, _FEWEST_DAYS)
    hits = (seen & (around(came) >= min_pods)).sum(axis=0)
    busy = np.flatnonzero((hits >= fewest) & (2 * hits > seen.sum(axis=0)))
    if not len(busy):
        return
    for run in np.split(busy, np.flatnonzero(np.diff(busy) > 2 * AROUND) + 1):
        first = max(0, int(run[0]) - AROUND)
        yield first, _median_day(came[:, first : int(run[-1]) + AROUND + 1], min_pods)


def around(came: Ints) -> Ints:
    """(n_days, n_minutes) pods within AROUND minutes of each minute."""
    sums = np.pad(np.cumsum(came, axis=1, dtype=np.int64), ((0, 0), (AROUND + 1, AROUND)), mode="edge")
    sums[:, : AROUND + 1] = 0
    return np.asarray(sums[:, 2 * AROUND + 1 :] - sums[:, : -2 * AROUND - 1])


def _median_day(came: Ints, min_pods: int) -> Ints:
    """(n_minutes,) as on the day that is nearest to the median of those on which enough came, and as many as that."""
    totals = came.sum(axis=1)
    days = np.flatnonzero(totals >= min_pods)
    median = float(np.median(totals[days]))
    day = days[np.argmin(np.abs(totals[days] - median))]
    so_far = np.cumsum(came[day], dtype=np.float64) * (median / totals[day])
    return np.asarray(np.diff(np.rint(so_far), prepend=0.0), dtype=np.int64)
