"""When a pod of a job is expected to run, and which half hours of the local days that touches.

Half hours are counted on the wall clock from 0001-01-01 on, so that one of them is the same whatever day is today.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cluster.predicted.horizon import Horizon
from forecast.calendar import SLOTS_PER_DAY

_LONGEST = 10 * 365 * 86_400.0
"""Seconds; beyond that a moment may be outside the calendar, and any client may write one."""


@dataclass(frozen=True, slots=True)
class Run:
    """When a pod starts and is expected to end, unix seconds."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RunHours:
    """Half hours that a run touches: from `first` to before `end`."""

    first: int
    end: int


def expected_run(started: float | None, seconds: float | None, now: float, known: Run | None) -> Run | None:
    """Return the run of a pod of `seconds` from its start, None if it has no end.

    started : unix seconds; None = not yet: the start that was known of it holds until the run is over, else it is now
    """
    if seconds is None or math.isnan(seconds):
        return None
    if started is None and known is not None:
        run = lasting(known, seconds)
        if run.start <= now < run.end:
            return run
    start = now if started is None else min(max(started, now - _LONGEST), now)
    return lasting(Run(start, start), seconds)


def lasting(run: Run, seconds: float) -> Run:
    """Return the same run with another expected length. seconds: from its start"""
    return Run(run.start, run.start + min(max(seconds, 0.0), _LONGEST))


def half_hours(run: Run, horizon: Horizon) -> RunHours:
    """What a run touches of the half hours of a horizon: the one under way, all until its end, and those of today
    since its start.

    A pod that is asked about has not ended, whatever was expected: its run reaches at least to the end of the half
    hour under way.
    """
    midnight = horizon.today.toordinal() * SLOTS_PER_DAY
    first = min(max(math.floor(horizon.position(run.start)), 0), horizon.slot)
    end = min(max(math.ceil(horizon.position(run.end)), horizon.slot + 1), horizon.n_slots)
    return RunHours(midnight + first, midnight + end)


def under_way(horizon: Horizon) -> int:
    """The half hour that is under way."""
    return horizon.today.toordinal() * SLOTS_PER_DAY + horizon.slot


def slots_of(hours: RunHours, days: Sequence[date]) -> slice:
    """The same as positions among the half hours of consecutive local days: empty if it touches none of them."""
    midnight = days[0].toordinal() * SLOTS_PER_DAY
    n_slots = len(days) * SLOTS_PER_DAY
    return slice(min(max(hours.first - midnight, 0), n_slots), min(max(hours.end - midnight, 0), n_slots))
