"""When the pods of Job owners ran, one entry per pod, and how long the next one will run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from base.arrays import Bools, Floats32, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY, Calendar

_DAY_SECONDS = SLOTS_PER_DAY * SLOT_MINUTES * 60

LONGEST_RUN: Final = 366 * 86_400.0

_MANY: Final = 20
"""Number of runs from which the 95 % quantile is an observed value."""


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """When the pods of a window were sampled, in seconds since 1970 (UTC).

    step_seconds : length of one sample
    sampled      : (n_sampled,) times at which any pod has a sample, ascending
    first, last  : (n_here,) time of the first and of the last sample of each pod, -1 = not sampled in the window
    """

    step_seconds: int
    sampled: Ints
    first: Ints
    last: Ints


@dataclass(frozen=True, slots=True)
class JobRuns:
    """Runs of the pods of Job owners, one entry per pod, in the order of their start.

    service : (n_runs,) index into the history's services
    start   : (n_runs,) seconds of local wall-clock time from midnight of the history's first day
    seconds : (n_runs,) length; of a run that is cut off as much of it as was seen
    open    : (n_runs, 2) whether its start, and whether its end, was not seen: it lies outside of the data
    """

    service: Ints
    start: Ints
    seconds: Floats32
    open: Bools

    @classmethod
    def none(cls) -> JobRuns:
        """The runs of a history without Job owners."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty(0, dtype=np.float32), np.empty((0, 2), dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.service)

    @property
    def day(self) -> Ints:
        """(n_runs,) day of the history on which each run starts."""
        return self.start // _DAY_SECONDS

    @property
    def slot(self) -> Ints:
        """(n_runs,) half hour of the day in which each run starts."""
        return self.start % _DAY_SECONDS // (SLOT_MINUTES * 60)

    def of_services(self, services: Bools) -> JobRuns:
        """The runs of some services, whose rows are counted anew: (n_services,) which are kept."""
        kept = services[self.service]
        row = np.cumsum(services) - 1
        return JobRuns(row[self.service[kept]], self.start[kept], self.seconds[kept], self.open[kept])

    def between(self, first_day: int, end_day: int) -> JobRuns:
        """The runs that start on days first_day..end_day (end exclusive), counted from first_day.

        What happens from midnight of end_day on is not known: a run that lasts beyond it is cut off there.
        """
        begin, end = first_day * _DAY_SECONDS, end_day * _DAY_SECONDS
        kept = (self.start >= begin) & (self.start < end)
        left = (end - self.start[kept]).astype(np.float32)
        lasts = self.seconds[kept] > left
        is_open = self.open[kept].copy()
        is_open[:, 1] |= lasts
        return JobRuns(self.service[kept], self.start[kept] - begin, np.where(lasts, left, self.seconds[kept]), is_open)

    def later(self, n_days: int) -> JobRuns:
        """The same runs, counted from n_days before the first day."""
        return JobRuns(self.service, self.start + n_days * _DAY_SECONDS, self.seconds, self.open)


def collect_runs(
    windows: Sequence[tuple[Ints, SampleTimes]], service_of_pod: Ints, calendar: Calendar, first_day: date
) -> JobRuns:
    """The runs in all windows of a history, those of one pod joined over window borders and gaps.

    windows        : the pods (rows of the pod table) of a window that belong to Job owners, and their times
    service_of_pod : (n_pods,) service of each row of the pod table
    A start or an end is seen where some pod was sampled one step before it, or right after it.
    """
    if not any(len(pods) for pods, _ in windows):
        return JobRuns.none()
    import pandas as pd  # 80 MB, which services that only read models need not have

    step = windows[0][1].step_seconds
    sampled = np.unique(np.concatenate([times.sampled for _, times in windows]))
    pods = np.concatenate([pods for pods, _ in windows])
    pod, entry = np.unique(pods, return_inverse=True)
    first = np.full(len(pod), np.iinfo(np.int64).max)
    last = np.full(len(pod), -1)
    np.minimum.at(first, entry, np.concatenate([times.first for _, times in windows]))
    np.maximum.at(last, entry, np.concatenate([times.last for _, times in windows]))
    start = calendar.local_seconds(pd.to_datetime(first, unit="s", utc=True))
    start -= (first_day.toordinal() - date(1970, 1, 1).toordinal()) * _DAY_SECONDS
    order = np.lexsort((pod, start))
    is_open = ~np.stack([np.isin(first - step, sampled), np.isin(last + step, sampled)], axis=1)
    return JobRuns(
        service=service_of_pod[pod][order],
        start=start[order],
        seconds=(last - first + step)[order].astype(np.float32),
        open=is_open[order],
    )


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Seconds that a pod runs.

    typical  : half of them take no longer
    long     : 19 of 20 take no longer
    n        : pods, or Jobs, that it is from
    is_bound : it is from whole Jobs, whose pods had to be placed first: none of them took longer
    """

    typical: float
    long: float
    n: int
    is_bound: bool = False


def estimate(seconds: Iterable[float], *, is_bound: bool = False) -> RunEstimate:
    """Run length to expect after these run times (at least one).

        typical = median
        long    = 95 % quantile                 of 20 and more
                  longest x (1 + 1 / n)         of n fewer

    The longest of a few is soon passed.
    """
    runs = sorted(seconds)
    n = len(runs)
    long = _quantile(runs, 0.95) if n >= _MANY else runs[-1] * (1.0 + 1.0 / n)
    return RunEstimate(_quantile(runs, 0.5), min(long, LONGEST_RUN), n, is_bound)


def _quantile(ordered: Sequence[float], q: float) -> float:
    """As numpy.quantile, which takes ten times as long for a few numbers."""
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
