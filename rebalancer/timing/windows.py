r"""When moves may be made: in the valley of the cluster's load, as the forecast finds it.

    load                            peak: no moves          threshold = lowest + valley_share x (highest - lowest)
     |                 ____________
     |              __/            \__
     |- - - - - - -/- - - - - - - - - \- - -  threshold
     |____    ____/                    \____
          \__/   .                     .
      [window)freeze                   [window ...
                  the ramp

Half hours are instants: on the day clocks go forward two slots do not come, and on the day they go back two come twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np

from base.arrays import Bools, Floats
from base.errors import InputError
from base.local_hours import ChangeWindows, parse_hours
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY, Calendar
from rebalancer.rebalance_settings import WindowOptions

HALF_HOUR = timedelta(minutes=SLOT_MINUTES)


@dataclass(frozen=True, slots=True)
class MoveWindow:
    """A move may start at an instant of [begin, end). Both are in UTC."""

    begin: datetime
    end: datetime

    def __contains__(self, instant: datetime) -> bool:
        return self.begin <= instant < self.end


@dataclass(frozen=True, slots=True)
class MoveWindows:
    """Windows in the order of time.

    because : how they were found, or why there are none
    is_flat : the load has no valley
    """

    windows: tuple[MoveWindow, ...]
    because: str
    is_flat: bool = False


def may_start(now: datetime, windows: Iterable[MoveWindow]) -> bool:
    """Whether a move may start now."""
    return any(now in window for window in windows)


def move_windows(
    load: Floats,
    first_day: date,
    calendar: Calendar,
    now: datetime,
    options: WindowOptions,
    changes: ChangeWindows,
    *,
    hours: int = 24,
) -> MoveWindows:
    """Return the windows from the half hour of `now` on, for so many hours.

    load : (n_days, 48) predicted share of the cluster's capacity, on local days from `first_day`; NaN = not known.
           One day more than asked for shows how the last valley ends.
    now  : aware
    changes : when pods may move at all: a window has whole half hours of theirs
    """
    if load.ndim != 2 or load.shape[1] != SLOTS_PER_DAY:
        raise InputError(f"the load has the shape {load.shape}: it must be (days, {SLOTS_PER_DAY})")
    begins = _half_hours(first_day, len(load), calendar, now)
    curve = _on_instants(load, first_day, begins, calendar)  # (n,)
    n_asked = min(len(begins), hours * 60 // SLOT_MINUTES)
    known = curve[:n_asked][np.isfinite(curve[:n_asked])]
    if not known.size:
        return MoveWindows((), "no load is predicted for these hours")
    lowest, highest = float(known.min()), float(known.max())
    forbidden = _in_peak_hours(begins, calendar, options)
    is_open = np.array([changes.covers(at, at + HALF_HOUR, calendar.zone) for at in begins], dtype=bool)
    is_flat = highest - lowest <= options.flat_share * highest
    if is_flat:
        frozen = forbidden | _freeze_before(forbidden, options)
        usable = _lowest_hours(curve, frozen | ~is_open, n_asked, options)
        because = f"the load stays between {lowest:.0%} and {highest:.0%}: it has no valley, these are its lowest hours"
    else:
        threshold = lowest + options.valley_share * (highest - lowest)
        forbidden |= curve >= highest - options.peak_share * (highest - lowest)
        low = (curve <= threshold) & ~forbidden  # NaN is not: what is not known may be the ramp
        usable = low & ~_freeze_before(~low, options)
        because = f"the load is at most {threshold:.0%} of capacity, between {lowest:.0%} and {highest:.0%}"
    windows = _runs(begins, usable & is_open, n_asked, options)
    if changes.hours:
        because += f"; only in {changes}"
    why_none = f"no hours are low enough for long enough{f' in {changes}' if changes.hours else ''}"
    return MoveWindows(windows, because if windows else why_none, is_flat)


def _half_hours(first_day: date, n_days: int, calendar: Calendar, now: datetime) -> list[datetime]:
    """Beginnings of the half hours of these days, from that of `now` on."""
    at, end = calendar.midnight(first_day).astimezone(UTC), calendar.midnight(first_day + timedelta(days=n_days))
    if now > at:
        at += (now.astimezone(UTC) - at) // HALF_HOUR * HALF_HOUR
    found = []
    while at < end:
        found.append(at)
        at += HALF_HOUR
    return found


def _on_instants(load: Floats, first_day: date, begins: list[datetime], calendar: Calendar) -> Floats:
    """(n,) the load in each half hour."""
    places = [calendar.day_and_slot(at) for at in begins]
    return np.array([load[(day - first_day).days, slot] for day, slot in places], dtype=np.float64)


def _in_peak_hours(begins: list[datetime], calendar: Calendar, options: WindowOptions) -> Bools:
    """(n,) half hours of which a part is in the configured hours."""
    peaks = [parse_hours(text) for text in options.peak_hours]
    zone = calendar.zone
    return np.array([any(peak.overlaps(at, at + HALF_HOUR, zone) for peak in peaks) for at in begins], dtype=bool)


def _freeze_before(high: Bools, options: WindowOptions) -> Bools:
    """(n,) half hours that reach into the freeze before a high one. What lies behind the last is not known."""
    n = -int(-options.freeze // (SLOT_MINUTES * 60))  # rounded up
    frozen = np.zeros(len(high), dtype=bool)
    for ahead in range(1, n + 1):
        frozen[:-ahead] |= high[ahead:]
    return frozen


def _lowest_hours(curve: Floats, forbidden: Bools, n_asked: int, options: WindowOptions) -> Bools:
    """(n,) the stretch of at most `flat_hours` with the lowest mean: the longest that is nowhere forbidden."""
    chosen = np.zeros(len(curve), dtype=bool)
    costs = np.where(np.isfinite(curve) & ~forbidden, curve, np.inf)[:n_asked]
    for length in range(min(round(options.flat_hours * 60 / SLOT_MINUTES), n_asked), 0, -1):
        means = np.lib.stride_tricks.sliding_window_view(costs, length).mean(axis=1)
        best = int(means.argmin())
        if np.isfinite(means[best]):
            chosen[best : best + length] = True
            break
    return chosen


def _runs(begins: list[datetime], usable: Bools, n_asked: int, options: WindowOptions) -> tuple[MoveWindow, ...]:
    """Stretches of usable half hours that begin in the hours that are asked about."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], usable[:n_asked], [False])).astype(np.int8)))
    windows = (MoveWindow(begins[a], begins[b - 1] + HALF_HOUR) for a, b in edges.reshape(-1, 2))
    return tuple(one for one in windows if (one.end - one.begin).total_seconds() >= options.shortest)
