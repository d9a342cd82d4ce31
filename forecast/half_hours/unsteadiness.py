"""How far the past scattered: in this half hour, from day to day, from week to week, from one half hour to the next."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats
from forecast.half_hours.feature import Feature
from forecast.half_hours.midnight import Midnight


def _week_to_week(midnight: Midnight) -> AnyFloats:
    known = midnight.known
    if known.shape[1] <= 7:
        return np.zeros_like(midnight.usual)
    return midnight.all_day(np.abs(known[:, 7:] - known[:, :-7]).mean(axis=(1, 2)))


def _step_to_step(midnight: Midnight) -> AnyFloats:
    half_hours = midnight.week.reshape(len(midnight.known), -1)
    return midnight.all_day(np.abs(np.diff(half_hours, axis=1)).mean(axis=1))


def _day_to_day(midnight: Midnight) -> AnyFloats:
    return midnight.all_day(np.abs(np.diff(midnight.week, axis=1)).mean(axis=(1, 2)))


def _about_usual(midnight: Midnight) -> AnyFloats:
    return np.asarray(np.abs(midnight.known - midnight.usual[:, None]).mean(axis=1))


FEATURES = (
    Feature("scatter_28_days", lambda m: m.known.std(axis=1), is_level=False),
    Feature("scatter_7_days", lambda m: m.week.std(axis=1), is_level=False),
    Feature("scatter_about_usual", _about_usual, is_level=False),
    Feature("scatter_of_levels", lambda m: m.all_day(m.known.mean(axis=2).std(axis=1)), is_level=False),
    Feature("day_to_day", _day_to_day, is_level=False),
    Feature("week_to_week", _week_to_week, is_level=False),
    Feature("step_to_step", _step_to_step, is_level=False),
)
