"""How the model in use and tonight's recipe did on the days after the cut-off of the model in use.

Both know exactly what lay before that cut-off, so neither has an advantage: the model in use is read as it was issued,
the recipe is fitted anew at the same cut-off. The seasonal naive at that cut-off is what both have to be worth.
Losses are those of the backtest (docs/backtest.md) on per-pod means: pinball loss of each day's peak, every
series divided by the 0.9 quantile of its daily peaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from forecast.arrays import Floats
from forecast.backtest import SAMPLES_NEEDED, Score, daily_peaks, peak_scores, scored_series
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.resources import RESOURCES

__all__ = ["Evidence", "compare", "evaluation_days", "measured_peaks", "peaks_of", "seasonal_naive"]

_SCALE_DAYS = 28
"""Series are judged complete and scaled over this many days, so that a service of last month is judged, too."""

_WEEK = 7


@dataclass(frozen=True, slots=True)
class Evidence:
    """Scores on the same series and days.

    widening : factor on the candidate's 0.95 bounds that puts 0.95 of the peaks within them; inf = none does
    """

    candidate: Score
    current: Score
    naive: Score
    widening: float
    days: tuple[date, ...]


def evaluation_days(history: History, cut_off: date, at_most: int) -> tuple[date, ...]:
    """The last days of the history that a model with this cut-off did not know."""
    return tuple(day for day in history.days if day >= cut_off)[-at_most:]


def peaks_of(model: PeakModel, history: History, days: tuple[date, ...]) -> Floats:
    """What a model says about the history's services: (n_services, n_resources, n_days, n_quantiles), NaN = nothing."""
    row = {service: index for index, service in enumerate(model.services)}
    found = np.array([row.get(service, -1) for service in history.services], dtype=np.int64)
    peaks = np.full((len(found), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    for position, day in enumerate(days):
        peaks[found >= 0, :, position] = model.service_peaks(day)[found[found >= 0]]
    return peaks


def measured_peaks(history: History, days: tuple[date, ...]) -> Floats:
    """The peaks that came: (n_services, n_resources, n_days); NaN where under 0.95 of the day was measured."""
    index = [history.days.index(day) for day in days]
    usage = history.usage_per_pod[:, :, index]
    complete = np.isfinite(usage).mean(axis=3) >= SAMPLES_NEEDED
    return np.where(complete, daily_peaks(usage), np.nan)


def seasonal_naive(known: Floats, lead: int) -> Floats:
    """The rule `same_day_last_week` of forecast/baselines.py for a day further ahead; `yesterday` under 8 known days.

    known : (n_services, n_resources, n_days) daily peaks before the cut-off
    lead  : 0 = the day of the cut-off
    Returns (n_services, n_resources, n_quantiles).
    """
    last = known[:, :, -1]
    if known.shape[2] <= _WEEK:
        return np.stack([last, last], axis=-1)
    same_day = known[:, :, -_WEEK + lead % _WEEK]
    return np.stack([same_day, np.fmax(same_day, last)], axis=-1)


def compare(history: History, current: PeakModel, candidate: PeakModel, days: tuple[date, ...]) -> dict[str, Evidence]:
    """Evidence per resource; resources with nothing that all three forecast and that was measured are absent.

    candidate : tonight's recipe fitted on the days before the cut-off of `current`
    days      : days of the history from that cut-off on
    """
    cut_off = history.days.index(current.first_day)
    used, scale = scored_series(history.usage_per_pod[:, :, -_SCALE_DAYS:])
    known = daily_peaks(history.usage_per_pod[:, :, max(0, cut_off - _WEEK - 1) : cut_off])
    forecasts = {
        "candidate": peaks_of(candidate, history, days),
        "current": peaks_of(current, history, days),
        "naive": np.stack([seasonal_naive(known, (day - current.first_day).days) for day in days], axis=2),
    }
    actual = measured_peaks(history, days)
    scores = peak_scores(forecasts, actual, used, scale)
    everywhere = np.isfinite(actual) & used[:, :, None]  # (n_services, n_resources, n_days)
    for forecast in forecasts.values():
        everywhere &= np.isfinite(forecast).all(axis=3)
    result = {}
    for index, resource in enumerate(RESOURCES):
        pairs = everywhere[:, index]
        if resource.name not in scores or not pairs.any():
            continue
        by_name = scores[resource.name]
        bound = forecasts["candidate"][:, index, :, -1][pairs]
        result[resource.name] = Evidence(
            candidate=by_name["candidate"],
            current=by_name["current"],
            naive=by_name["naive"],
            widening=_widening(actual[:, index][pairs], bound),
            days=tuple(day for position, day in enumerate(days) if pairs[:, position].any()),
        )
    return result


def _widening(actual: Floats, bound: Floats) -> float:
    """The 0.95 quantile of actual / bound, at least 1; an observed one, so that really 0.95 of them are covered."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(actual <= bound, 1.0, actual / bound)
    return float(np.quantile(ratio, PEAK_QUANTILES[-1], method="higher"))
