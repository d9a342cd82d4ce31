"""Month ends: the last two workdays of a month and the first, for services whose history shows that they differ.

Billing and reports come with the end of a month, which no weekday and no last week foretells. For each of the three
days, a service takes part if each of at least two such days in its history lay far above what is usual of its weekday,
or each far below: by a third, and beyond its ordinary variation from day to day. What such a day makes of the load is
then learned as of an event without a factor (`event_effect`): k of them count k / (k + 1).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import Calendar, Days, DayType
from forecast.event_calendar import Event
from forecast.event_effect import expected_then, log_effect
from forecast.holiday_effect import as_ordinary

_KINDS = {"last workday of a month": -1, "last workday but one of a month": -2, "first workday of a month": 0}
"""Place among the workdays of the month."""

_LEAST_DAYS = 2
_SMALLEST_EFFECT = float(np.log(4 / 3))
_CLEAR_EFFECT = 4.0
"""Standard deviations of a series' ordinary workdays, from their median deviation."""
_ORDINARY_QUANTILE = 0.95
"""An effect is larger than those of so many ordinary workdays: a few services have days far from usual all the time."""

_MEASURED_SHARE = 0.75


def month_end_days(calendar: Calendar, days: Sequence[date]) -> tuple[Event, ...]:
    """The days of each kind in the months of some days, as events of one day; those of a kind have its name."""
    months = sorted({day.replace(day=1) for day in days})
    events = []
    for first in months:
        after = (first + timedelta(days=31)).replace(day=1)
        of_month = calendar.horizon(first, (after - first).days)
        kinds = calendar.describe(of_month).day_type
        workdays = [day for day, kind in zip(of_month, kinds, strict=True) if kind == DayType.WORKDAY]
        events += [Event(name=name, first_day=workdays[place]) for name, place in _KINDS.items()]
    return tuple(events)


def are_learnable(events: Sequence[Event], past: Sequence[date]) -> bool:
    """Whether the days of a history show any kind of day often enough."""
    return any(where.sum() >= _LEAST_DAYS for where in _by_kind(events, past).values())


def daily_means(table: AnyFloats, rows: Ints) -> Floats:
    """Mean of each day of which most was measured, else NaN, of some rows: (n_rows, n_days).

    table : (n, n_days, 48)
    """
    means = np.full((len(rows), table.shape[1]), np.nan)
    for day in range(table.shape[1]):  # a copy of all days would be as large as the history
        of_day = table[rows, day].astype(np.float64)
        measured = np.isfinite(of_day)
        enough = measured.mean(axis=1) >= _MEASURED_SHARE
        means[enough, day] = np.where(measured, of_day, 0.0)[enough].sum(axis=1) / measured[enough].sum(axis=1)
    return means


def takes_part(
    events: Sequence[Event], past: Sequence[date], days: Days, load: AnyFloats, service: Ints, n_services: int
) -> Bools:
    """Which services differ on the days of each event: (n_events, n_services). Events of a name are of a kind.

    past, days : days of the history, and their calendar
    load       : (n_series, n_days) mean of each day without holidays and events of the user; NaN = not measured
    service    : (n_series,) index of each series' service
    """
    part: Bools = np.zeros((len(events), n_services), dtype=np.bool_)
    on = _by_kind(events, past)
    is_ordinary = ~np.any(list(on.values()), axis=0)
    effect = _effects(load, days, is_ordinary)
    ordinary = effect[:, is_ordinary & (days.day_type == DayType.WORKDAY)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # series without an ordinary day
        variation = 1.4826 * np.nanmedian(np.abs(ordinary), axis=1)
        rare = np.nanquantile(np.abs(ordinary), _ORDINARY_QUANTILE, axis=1)
    least = np.maximum(_SMALLEST_EFFECT, np.fmax(_CLEAR_EFFECT * variation, rare))  # (n_series,)
    for name, where in on.items():
        seen = effect[:, where]
        known = np.isfinite(seen)
        above = np.all(~known | (seen >= least[:, None]), axis=1)
        below = np.all(~known | (seen <= -least[:, None]), axis=1)
        shown = (known.sum(axis=1) >= _LEAST_DAYS) & (above | below)
        takes: Bools = np.isin(np.arange(n_services), service[shown])
        part[[event.name == name for event in events]] = takes
    return part


def _by_kind(events: Sequence[Event], past: Sequence[date]) -> dict[str, Bools]:
    """Where in the history the days of each kind are: (n_days,)."""
    kinds: dict[str, Bools] = {}
    for event in events:
        kinds[event.name] = kinds.get(event.name, np.zeros(len(past), dtype=np.bool_)) | event.slots(past).any(axis=1)
    return kinds


def _effects(load: AnyFloats, days: Days, is_ordinary: Bools) -> Floats:
    """log(load / usual load of the weekday at that time) of each day: (n_series, n_days); NaN = not known."""
    usual = np.where(is_ordinary, load, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # weekdays without data
        curves = np.stack([np.nanmedian(usual[:, days.weekday == day], axis=1) for day in range(7)], axis=1)
    return log_effect(load[..., None], expected_then(usual[..., None], curves[..., None], as_ordinary(days)))
