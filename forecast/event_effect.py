"""Events of a user's calendar: kept out of the ordinary days, multiplied into the days to come, measured against what
days would have been.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.event_calendar import Event
from forecast.service_key import ServiceKey

# What past days would have been, had they been ordinary: the yardstick of events and month ends.
#
# A day is held against the expected curve of its weekday, or of a holiday, brought to the level of the ordinary days
# around it, so that growth since then is no effect of the day.

_REACH_DAYS = 7

_HOLIDAY = 7
"""Position after those of the weekdays."""

_SMALLEST_SHARE = 1e-6
"""Logarithms of ratios stay finite: nothing at all counts as this share of what is usual."""

_LARGEST_LEARNED = 20.0

_ORDINARY_SHARE = 0.5
"""A service keeps at least this share of its measured days: what happens every other day is its ordinary load."""


def expected_curves(ordinary: AnyFloats, horizon: Days, holiday: AnyFloats) -> Floats:
    """Mean expected curve of each weekday, and of holidays: (n_series, 8, 48). Two weeks hold every weekday.

    ordinary : (n_series, n_horizon_days, 48) expected curves without holidays and events
    holiday  : (n_series, 48)
    """
    weekdays = [ordinary[:, horizon.weekday == day].mean(axis=1) for day in range(7)]
    return np.stack([*weekdays, holiday], axis=1)


def expected_then(usage: AnyFloats, curves: AnyFloats, days: Days) -> Floats:
    """What each past day would have been without its event: (n_series, n_days, 48); NaN without days around it.

    usage  : (n_series, n_days, 48) ordinary days only, NaN = not measured, or no ordinary day
    curves : (n_series, 8, 48) from `expected_curves`
    """
    of_day = curves[:, np.where(days.day_type == DayType.HOLIDAY, _HOLIDAY, days.weekday)]  # (n_series, n_days, 48)
    measured = np.isfinite(usage)
    level = _ratio(np.where(measured, usage, 0.0).sum(axis=2), np.where(measured, of_day, 0.0).sum(axis=2))
    around = np.full_like(level, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # series without an ordinary day around
        for day in range(level.shape[1]):
            near = np.arange(max(0, day - _REACH_DAYS), min(level.shape[1], day + _REACH_DAYS + 1))
            around[:, day] = np.nanmedian(level[:, near[near != day]], axis=1) if len(near) > 1 else np.nan
    return of_day * around[:, :, None]


def log_effect(usage: AnyFloats, expected: AnyFloats) -> Floats:
    """log(used / expected) over the last axis, of slots in which both are known; NaN without any: (...,)."""
    known = np.isfinite(usage) & np.isfinite(expected)
    ratio = _ratio(np.where(known, usage, 0.0).sum(axis=-1), np.where(known, expected, 0.0).sum(axis=-1))
    return np.asarray(np.log(np.maximum(ratio, _SMALLEST_SHARE)))


def _ratio(used: Floats, expected: Floats) -> Floats:
    return np.where(expected > 0, used / np.where(expected > 0, expected, 1.0), np.nan)


@dataclass(frozen=True, slots=True)
class EventEffect:
    """Load on the days of events to the ordinary load. factors : (n_events, n_series)"""

    events: tuple[Event, ...]
    factors: Floats

    def on(self, days: Sequence[date]) -> Floats:
        """The factor of each half hour, events at the same time multiplied: (n_series, n_days, 48)."""
        result = np.ones((self.factors.shape[1], len(days), SLOTS_PER_DAY))
        for event, factor in zip(self.events, self.factors, strict=True):
            covered = event.slots(days)
            if covered.any():
                result[:, covered] *= factor[:, None]
        return result

    def among(self, rows: Ints, n_series: int) -> EventEffect:
        """The same of n_series, of which these are the ones at `rows`; no effect on the others."""
        factors = np.ones((len(self.events), n_series))
        factors[:, rows] = self.factors
        return EventEffect(self.events, factors)


@dataclass(frozen=True, slots=True)
class EventDays:
    """The events that change anything for a history.

    takes_part : (n_events, n_services) services for which the days of the event are not their usual days
    special    : (n_services, n_days) past days that ordinary profiles do not see
    measured   : (n_services, n_days) past days with any usage; other days may hold what was borrowed
    """

    events: tuple[Event, ...]
    takes_part: Bools
    special: Bools
    measured: Bools

    @classmethod
    def of(
        cls, events: Sequence[Event], services: Sequence[ServiceKey], days: Sequence[date], measured: Bools
    ) -> EventDays:
        """Which days of which services differ."""
        part: Bools = np.zeros((len(events), len(services)), dtype=np.bool_)
        special: Bools = np.zeros((len(services), len(days)), dtype=np.bool_)
        for row, event in enumerate(events):
            part[row] = event.services(services)
            special |= part[row, :, None] & event.slots(days).any(axis=1)
        ordinary = (measured & ~special).sum(axis=1)
        usual = special.any(axis=1) & (ordinary < np.maximum(_ORDINARY_SHARE * measured.sum(axis=1), 1))
        special[usual] = False
        part[:, usual] = False
        return cls(tuple(events), part, special, measured)

    def and_also(self, events: Sequence[Event], takes_part: Bools, days: Sequence[date]) -> EventDays:
        """With more events. On a day of an event that is known already, a service has only this one.

        takes_part : (n_events, n_services)
        """
        part = takes_part.copy()
        special = self.special.copy()
        for row, event in enumerate(events):
            covered = event.slots([event.first_day])
            for own, known in zip(self.takes_part, self.events, strict=True):
                if (covered & known.slots([event.first_day])).any():
                    part[row] &= ~own
            special |= part[row, :, None] & event.slots(days).any(axis=1)
        shown = np.flatnonzero(part.any(axis=1)).tolist()
        more = tuple(events[row] for row in shown)
        joined = np.concatenate([self.takes_part, part[shown]])
        return EventDays((*self.events, *more), joined, special, self.measured)

    def without(self, usage: AnyFloats, service: Ints) -> Floats:
        """A copy in which the days that differ are not measured. usage : (n_series, n_days, 48) of these services."""
        ordinary = np.array(usage, dtype=np.float64)
        ordinary[self.special[service]] = np.nan
        return ordinary

    def effect(
        self,
        *,
        past: Sequence[date],
        service: Ints,
        follows_factor: Bools,
        group: Ints,
        usage: AnyFloats,
        expected: AnyFloats,
    ) -> EventEffect:
        """What each event makes of the ordinary load.

        past           : days of the history
        service        : (n_series,) index of each series' service
        follows_factor : (n_series,) those that an event's factor multiplies; others are only learned
        group          : (n_series,) the resource: what is not known of a series alone is taken from its group
        usage          : (n_series, n_past_days, 48) history with its events
        expected       : the same days as ordinary ones
        """
        factors = np.ones((len(self.events), len(usage)))
        learned: dict[str, Floats] = {}
        for row, (event, part) in enumerate(zip(self.events, self.takes_part[:, service], strict=True)):
            if event.factor is None and event.name not in learned:
                learned[event.name] = self._learned(event.name, past, service, group, usage, expected)
            factor = learned[event.name] if event.factor is None else np.where(follows_factor, event.factor, 1.0)
            factors[row] = np.where(part, factor, 1.0)
        return EventEffect(self.events, factors)

    def _learned(
        self, name: str, past: Sequence[date], service: Ints, group: Ints, usage: AnyFloats, expected: AnyFloats
    ) -> Floats:
        """The factor of each series from past events of this name: (n_series,)."""
        seen = []
        for event, part in zip(self.events, self.takes_part[:, service], strict=True):
            if event.name != name or not (covered := event.slots(past)).any():
                continue
            on = covered.any(axis=1)
            counted = covered[on] & self.measured[service][:, on, None]  # (n_series, n_event_days, 48)
            only = np.where(counted, usage[:, on], np.nan).reshape(len(usage), -1)
            seen.append(np.where(part, log_effect(only, expected[:, on].reshape(len(usage), -1)), np.nan))
        return shrunk_factors(np.stack(seen), group) if seen else np.ones(len(usage))


def shrunk_factors(effects: AnyFloats, group: Ints) -> Floats:
    """Expected factor from the logarithms of those seen: (n_series,), by k / (k + 1) of its own and of its group.

    effects : (n_times, n_series) NaN = the series was not there
    """
    count = np.isfinite(effects).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # series that were never there
        own = np.nan_to_num(np.nanmean(effects, axis=0))
    shared = np.zeros(len(own))
    for one in np.unique(group):
        known = (group == one) & (count > 0)
        if known.any():
            most = float(count[known].max())
            shared[group == one] = most / (most + 1) * float(np.median(own[known]))
    weight = count / (count + 1.0)
    effect: Floats = np.exp(weight * own + (1 - weight) * shared)
    return np.clip(effect, 1 / _LARGEST_LEARNED, _LARGEST_LEARNED)
