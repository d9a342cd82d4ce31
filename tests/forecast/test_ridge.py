from __future__ import annotations

import numpy as np

from base.arrays import Floats
from forecast.calendar import Days
from forecast.predictors.last_week import LastWeekPredictor
from forecast.predictors.ridge import RidgePredictor


def some_days(n_days: int, first_weekday: int = 0) -> Days:
    weekday = (np.arange(n_days) + first_weekday) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


def wandering(n_series: int, n_days: int, *, step: float, seed: int = 0) -> Floats:
    """An evening peak whose height wanders from day to day, and falls at weekends."""
    rng = np.random.default_rng(seed)
    shape = 0.3 + np.exp(-(((np.arange(48) - 40) / 5) ** 2))
    level = np.exp(np.cumsum(rng.normal(0, step, (n_series, n_days)), axis=1))
    week = np.where(np.arange(n_days) % 7 >= 5, 0.5, 1.0)
    return (level * week)[:, :, None] * shape * rng.lognormal(0, 0.05, (n_series, n_days, 48))


def test_a_level_that_wanders_is_forecast_better_than_by_last_week() -> None:
    usage = wandering(60, 36, step=0.15)
    days = some_days(36)
    known, tomorrow = usage[:, :-1], usage[:, -1]
    errors = []
    for kind in (RidgePredictor, LastWeekPredictor):
        curve = kind().fit(known, days.take(slice(35))).predict_curve(some_days(1, 0))[:, 0]
        errors.append(np.abs(curve - tomorrow).mean() / tomorrow.mean())
    assert errors[0] < 0.8 * errors[1]


def test_two_weeks_ahead_stay_near_what_was() -> None:
    usage = wandering(30, 35, step=0.05)
    usage[0] *= np.linspace(1, 8, 35)[:, None]
    curve = RidgePredictor().fit(usage, some_days(35)).predict_curve(some_days(14))
    highest = usage[:, -14:].max(axis=(1, 2))
    assert (curve.max(axis=(1, 2)) <= 2 * highest).all()
    assert (curve.mean(axis=(1, 2)) > 0.3 * usage[:, -7:].mean(axis=(1, 2))).all()


def test_one_burst_does_not_decide_the_weights_of_all() -> None:
    usage = wandering(40, 35, step=0.1)
    burst = usage.copy()
    burst[0, 20, 7] *= 1e6
    plain, beside = (RidgePredictor().fit(u, some_days(35)).predict_curve(some_days(3))[1:] for u in (usage, burst))
    assert np.abs(beside / plain - 1).mean() < 0.1
