"""What the simple forecasters say of series whose answer is known."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks.decision_forecasters import (
    QUANTILES,
    Forecaster,
    auto_ets,
    daily_copy,
    error_quantiles,
    filled,
    normal_quantiles,
    ridge,
    seasonal_naive,
)
from forecast.arrays import Floats


def test_normal_quantiles_are_ordered_and_never_negative() -> None:
    found = normal_quantiles(np.array([1.0, 0.1]), np.array([0.04, 0.04]))
    assert found[0, QUANTILES.index(0.5)] == pytest.approx(1.0)
    assert found[0, QUANTILES.index(0.95)] == pytest.approx(1 + 0.2 * 1.645, abs=1e-3)
    assert (np.diff(found, axis=-1) >= 0).all() and (found >= 0).all()


def weekly_series(n_days: int = 21) -> Floats:
    """Two series of a daily and a weekly pattern without noise."""
    slot, day = np.arange(48), np.arange(n_days)
    curve = 2 + np.sin(slot / 48 * 2 * np.pi) + 0.5 * (day[:, None] % 7 == 5)
    return np.stack([curve, 3 * curve])


@pytest.mark.parametrize("forecaster", [seasonal_naive, ridge])
def test_a_week_without_noise_is_forecast_exactly(forecaster: Forecaster) -> None:
    past = weekly_series()
    found = forecaster(past[:, :20], np.zeros(2, dtype=np.int64), np.arange(21) % 7)
    assert found.shape == (2, 48, len(QUANTILES))
    assert found[..., QUANTILES.index(0.5)] == pytest.approx(past[:, 20], rel=0.05)


def test_the_daily_copy_is_yesterday() -> None:
    past = weekly_series()
    assert (daily_copy(past, np.zeros(2, dtype=np.int64), np.arange(22) % 7)[..., 0] == past[:, -1]).all()


class _EtsOf:
    """Stands for AutoETS: a normal distribution around the highest value of a series, whose width is given."""

    def __init__(self, width: float) -> None:
        self.width = width

    def __call__(self, *, season_length: int, model: str) -> _EtsOf:
        return self

    def forecast(self, *, y: Floats, h: int, level: list[int]) -> dict[str, Any]:
        mean = np.full(h, y.max())
        sides = {
            f"{side}-{one}": mean + sign * one * self.width for one in level for side, sign in (("lo", -1), ("hi", 1))
        }
        return {"mean": mean, **sides}


def with_ets(monkeypatch: pytest.MonkeyPatch, width: float) -> None:
    module = ModuleType("statsforecast.models")
    module.AutoETS = _EtsOf(width)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "statsforecast", ModuleType("statsforecast"))
    monkeypatch.setitem(sys.modules, "statsforecast.models", module)


def test_hours_of_ets_become_half_hours_and_its_intervals_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ets(monkeypatch, 0.001)
    found = auto_ets(np.ones((2, 14, 48)), np.zeros(2, dtype=np.int64), np.arange(15) % 7)
    assert found.shape == (2, 48, len(QUANTILES))
    assert found[..., QUANTILES.index(0.5)] == pytest.approx(1.0)
    assert found[..., QUANTILES.index(0.95)] == pytest.approx(1.09)
    assert found[..., QUANTILES.index(0.1)] == pytest.approx(0.92)


def test_an_answer_of_nan_is_no_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ets(monkeypatch, np.nan)
    with pytest.raises(ValueError, match="NaN for 2 of 2 series"):
        auto_ets(np.ones((2, 14, 48)), np.zeros(2, dtype=np.int64), np.arange(15) % 7)


def test_errors_of_neighbouring_half_hours_count_and_those_of_others_do_not() -> None:
    errors = np.zeros((1, 9, 48))
    errors[0, :, 10] = 1.0
    highest = error_quantiles(errors)[0, :, -1]
    assert set(np.flatnonzero(highest)) == {8, 9, 10, 11, 12}


def test_gaps_take_the_day_before() -> None:
    usage = np.ones((1, 2, 48))
    usage[0, 1, 5] = np.nan
    usage[0, 0, 7] = np.nan
    found = filled(usage)
    assert found[0, 1, 5] == 1 and found[0, 0, 7] == 0
