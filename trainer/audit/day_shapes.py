"""Does the clock of the history fit its load: shapes that jump by hours, quiet working hours, unknown holidays.

The shape of a week is its mean load by half hour, divided by its mean. How far two shapes are apart in time is where
their circular cross-correlation is highest.
"""

from __future__ import annotations

import warnings
from datetime import date
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, cluster_finding

DAYS_NEEDED: Final = 14

_WEEK: Final = 7
_LAGS = np.arange(-12, 13)  # six hours either way
_LEAST_LAG: Final = 2  # clocks change by an hour
_LEAST_FIT, _BETTER = 0.95, 3.0  # what stays unexplained falls to a third
_LEAST_SWING: Final = 0.1  # highest minus lowest half hour, as a share of the mean
_QUIET_SLOTS: Final = 8
_WORKING_HOURS, _NIGHT = (9.0, 18.0), (22.0, 7.0)
_CLEARLY: Final = 0.95
_LIKE_WEEKEND: Final = 0.85
_SAME_WEEKDAY_REACH, _WEEKEND_REACH = 21, 10  # days: levels drift over months
_DAYS_NAMED: Final = 8


def shape(total: AnyFloats) -> Floats:
    """Mean by slot over days, divided by its mean: (n_days, 48) -> (48,); NaN where a slot was never measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        by_slot = np.nanmean(total, axis=0, dtype=np.float64)
    mean = float(by_slot.mean())
    return np.asarray(by_slot / mean if mean > 0 else np.full(SLOTS_PER_DAY, np.nan))


def lag(before: Floats, after: Floats) -> tuple[int, float, float]:
    """How many slots `after` is later than `before`, and the correlations at that lag and at none; (48,) each."""
    moved = np.stack([np.roll(before, k) for k in _LAGS])  # (n_lags, 48)
    fits = np.array([_correlation(one, after) for one in moved])
    best = int(fits.argmax())
    return int(_LAGS[best]), float(fits[best]), float(fits[_LAGS == 0][0])


def jump(total: AnyFloats) -> tuple[int, int] | None:
    """The day whose week differs most in time from the week before it, and by how many slots; None = no such jump.

    total : (n_days, 48), NaN = no data
    """
    found: tuple[float, int, int] | None = None
    for day in range(_WEEK, len(total) - _WEEK + 1):
        before, after = shape(total[day - _WEEK : day]), shape(total[day : day + _WEEK])
        if not (_swings(before) and _swings(after)):
            continue
        slots, fit, unmoved = lag(before, after)
        if abs(slots) < _LEAST_LAG or fit < _LEAST_FIT or _BETTER * (1 - fit) > 1 - unmoved:
            continue
        if found is None or unmoved < found[0]:
            found = unmoved, day, slots
    return None if found is None else (found[1], found[2])


def quiet_at_work(by_slot: Floats) -> float | None:
    """Hour in the middle of the four quietest hours, if it lies in the working day and no four hours of the night are
    about as quiet; else None.

    by_slot : (48,) from `shape`
    """
    around = np.concatenate([by_slot, by_slot[: _QUIET_SLOTS - 1]])
    sums = np.convolve(around, np.ones(_QUIET_SLOTS), mode="valid")  # (48,) of the four hours from each slot on
    middle = (np.arange(SLOTS_PER_DAY) + _QUIET_SLOTS / 2) % SLOTS_PER_DAY / 2
    hour = float(middle[sums.argmin()])
    is_night = (middle >= _NIGHT[0]) | (middle <= _NIGHT[1])
    if _WORKING_HOURS[0] <= hour <= _WORKING_HOURS[1] and sums.min() < _CLEARLY * sums[is_night].min():
        return hour
    return None


def like_weekend(level: Floats, weekday: Ints) -> Ints:
    """Positions of days from Monday to Friday that are nearer to the weekends around them than to their weekday.

    Only where work and weekend are clearly apart: three quarters of either on their side of the middle.

    level   : (n_days,) mean load of each day, NaN = unknown
    weekday : (n_days,) 0 = Monday
    """
    days = np.arange(len(level))
    found = []
    for day in np.flatnonzero((weekday < 5) & np.isfinite(level)).tolist():
        away = np.abs(days - day)
        others = level[(weekday == weekday[day]) & (away > 0) & (away <= _SAME_WEEKDAY_REACH) & np.isfinite(level)]
        weekend = level[(weekday >= 5) & (away <= _WEEKEND_REACH) & np.isfinite(level)]
        work = level[(weekday < 5) & (away > 0) & (away <= _WEEKEND_REACH) & np.isfinite(level)]
        if len(others) >= 2 and len(weekend) >= 2 and len(work):
            usual, free = float(np.median(others)), float(np.median(weekend))
            middle = (free + usual) / 2
            apart = np.quantile(weekend, 0.75) < middle < np.quantile(work, 0.25)
            if apart and free < _LIKE_WEEKEND * usual and level[day] < middle:
                found.append(day)
    return np.array(found, dtype=np.int64)


def shifted_clock(evidence: AuditEvidence) -> Finding | None:
    """Finds the day on which the shape of the whole cluster jumped by an hour or more."""
    found = jump(evidence.cluster_total())
    if found is None:
        return None
    day, slots = evidence.history.days[found[0]], found[1]
    return cluster_finding(
        FindingKind.SHIFTED_CLOCK,
        evidence,
        what=f"from about {day} on the day of the whole cluster is {abs(slots) / 2:g} hours "
        f"{'later' if slots > 0 else 'earlier'} than in the week before",
        advice="if the users' clocks changed that day, set time_zone (in the settings or history.json) to the zone "
        "that they live in; if an export was joined there, check that both parts are in UTC",
    )


def time_zone(evidence: AuditEvidence) -> Finding | None:
    """Says whether the cluster is quietest while people work."""
    by_slot = shape(evidence.cluster_total())
    if not _swings(by_slot):
        return None
    hour = quiet_at_work(by_slot)
    if hour is None:
        return None
    zone = evidence.history.calendar.time_zone
    return cluster_finding(
        FindingKind.TIME_ZONE,
        evidence,
        what=f"the four quietest hours lie around {_clock(hour)} in {zone}, in the working day: either most load "
        "runs at night, or the time zone is not that of the users",
        advice="if it is not, set time_zone (in the settings or history.json) to their IANA zone: days are cut at "
        "local midnight, and holidays and weekends begin there",
    )


def no_holidays(evidence: AuditEvidence) -> Finding | None:
    """Says that no calendar is set, and which workdays look like holidays; its share is theirs of the time."""
    history = evidence.history
    if history.calendar.holiday_country is not None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        level = np.nanmean(evidence.cluster_total(), axis=1)
    found: list[date] = [history.days[i] for i in like_weekend(level, history.describe_days().weekday).tolist()]
    named = ", ".join(f"{day:%a} {day}" for day in found[:_DAYS_NAMED]) + (", ..." if len(found) > _DAYS_NAMED else "")
    seen = f"workdays that look like a weekend: {named}" if found else "no workday in it looks like a weekend"
    return cluster_finding(
        FindingKind.NO_HOLIDAYS,
        evidence,
        share=len(found) / len(history.days) if found else np.nan,
        what=f"no holiday calendar is set, so a holiday is forecast as an ordinary day; {seen}",
        advice="set holiday_country (in the settings or history.json), for instance DE or DE-BY",
    )


def _swings(by_slot: Floats) -> bool:
    return bool(np.isfinite(by_slot).all() and np.ptp(by_slot) >= _LEAST_SWING)


def _correlation(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{int(hour % 1 * 60):02d}"
