from __future__ import annotations

import numpy as np

from forecast.half_hours.features import FEATURES, table
from forecast.half_hours.groups import group_moves
from forecast.half_hours.midnight import Midnight, SeriesUnits, midnight_of
from tests.forecast.half_hours.series import alike, days_from_monday, noisy


def midnight(usage: np.ndarray, *, until: int | None = None) -> Midnight:
    """Before the day `until` of a history, its last day by default."""
    day = usage.shape[1] - 1 if until is None else until
    days = days_from_monday(usage.shape[1])
    known = usage[:, :day]
    unit = SeriesUnits.of(known).on(day)
    groups = alike(len(usage))
    moves = group_moves(known, unit, groups)
    return midnight_of(known, unit, days.take(slice(day)), days.take(slice(day, day + 1)), groups.resource, moves)


def column(name: str, seen: Midnight) -> np.ndarray:
    index = [feature.name for feature in FEATURES].index(name)
    return table(seen)[..., index]


def test_every_feature_has_a_name_of_its_own() -> None:
    names = [feature.name for feature in FEATURES]
    assert len(set(names)) == len(names)


def test_no_feature_sees_the_day_itself() -> None:
    usage = noisy(5, 30)
    changed = usage.copy()
    changed[:, 20:] *= 100
    np.testing.assert_array_equal(table(midnight(usage, until=20)), table(midnight(changed, until=20)))


def test_features_do_not_depend_on_the_unit() -> None:
    usage = noisy(5, 30)
    np.testing.assert_allclose(table(midnight(1e6 * usage)), table(midnight(usage)), rtol=1e-3, atol=1e-4)


def test_a_short_history_has_all_features() -> None:
    for n_days in (4, 8, 15):
        assert np.isfinite(table(midnight(noisy(5, n_days)))).all()


def test_lags_count_days_and_half_hours_back() -> None:
    usage = np.tile(np.arange(15.0)[None, :, None], (1, 1, 48)) + np.arange(48) / 100
    seen = midnight(usage)  # the target is day 14; the unit is 1, a day is one more than the one before
    usual = seen.usual[0, 10]
    assert column("lag_1", seen)[0, 10] + usual == np.float32(13.10)
    assert column("lag_7", seen)[0, 10] + usual == np.float32(7.10)
    np.testing.assert_allclose(column("lag_1_slot_+1", seen)[0, 10] + usual, 13.11, rtol=1e-5)
    np.testing.assert_allclose(column("lag_1_slot_-2", seen)[0, 10] + usual, 13.08, rtol=1e-5)


def test_days_like_the_coming_one_are_workdays_before_a_workday() -> None:
    usage = noisy(5, 28, noise=0.01)
    before_monday = column("like_days_7", midnight(usage, until=21))
    before_saturday = column("like_days_7", midnight(usage, until=26))
    assert (before_monday > before_saturday).all()
