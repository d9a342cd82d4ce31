"""A fit with a foundation model among its predictors, after it was removed or changed; the contract of all predictors
is in tests/contracts.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from base.errors import InputError
from forecast.fit import FitOptions, fit
from forecast.foundation_model import FoundationModelPredictor
from forecast.model import PeakModel
from forecast.predictors import discover
from tests.forecast.foundation.tiny_models import (
    HORIZON,
    WEEK,
    save_tiny_model,
    tiny_model,
    tiny_predictor,
    tiny_quantile_predictor,
)
from tests.synthetic import synthetic_history

HISTORY = synthetic_history(n_services=4, n_days=15)


def options(path: Path) -> FitOptions:
    return FitOptions(rehearsal_weeks=1, foundation_model=path)


@cache
def with_it() -> PeakModel:
    return fit(HISTORY.before(14), options(tiny_model()))


@cache
def without_it() -> PeakModel:
    return fit(HISTORY, FitOptions(rehearsal_weeks=1))


def test_a_fit_tries_it_and_names_it() -> None:
    model = with_it()
    assert model.info["predictors"] == sorted([*discover(), "foundation_model"])
    assert model.info["predictor_series"]["foundation_model"] > 0
    assert "foundation_model" in model.info["mean_weights"]["cpu"]
    assert model.predictor_weights.shape[2] == len(discover()) + 1


def test_a_model_that_forecasts_best_gets_weight() -> None:
    # Its answer is last week's curve, moved a little; of a week that repeats exactly that is the truth.
    column = with_it().info["predictors"].index("foundation_model")
    assert np.nanmax(with_it().predictor_weights[:, :, column]) > 0


def test_after_it_was_removed_a_fit_is_what_it_is_without_it() -> None:
    again = fit(HISTORY, FitOptions(rehearsal_weeks=1), previous=with_it())
    np.testing.assert_array_equal(again.usage_dated, without_it().usage_dated)
    assert "foundation_model" not in again.info["predictors"]


def test_weights_are_kept_with_the_same_model_and_found_anew_with_another(tmp_path: Path) -> None:
    other = save_tiny_model(tmp_path / "model.onnx", seed=7)
    kept, anew = (fit(HISTORY, options(path), previous=with_it()) for path in (tiny_model(), other))
    looked_at = [model.info["predictor_series"]["last_week"] for model in (kept, anew, without_it())]
    assert looked_at[0] < looked_at[1] == looked_at[2]


def test_a_fit_does_not_begin_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        fit(HISTORY, options(tmp_path / "gone.onnx"))


def test_horizons_beyond_its_own_are_rolled_on(tmp_path: Path) -> None:
    days = HISTORY.describe_days()
    usage = np.tile(np.linspace(1.0, 2.0, WEEK).reshape(1, 7, 48), (1, 2, 1))
    curve = tiny_predictor().fit(usage, days.take(slice(14))).predict_curve(days.take(slice(14))).reshape(-1)
    context = usage.reshape(-1) / usage.mean()
    first = FoundationModelPredictor(path=tiny_model()).fit(usage, days.take(slice(14)))
    np.testing.assert_array_equal(first.predict_curve(days.take(slice(2))).reshape(-1), curve[:HORIZON])
    moved = np.concatenate([context, curve[:HORIZON] / usage.mean()])[-len(context) :]
    second = tiny_predictor().fit(moved.reshape(1, 14, 48), days.take(slice(14))).predict_curve(days.take(slice(2)))
    np.testing.assert_allclose(second.reshape(-1), curve[HORIZON : 2 * HORIZON] / usage.mean(), rtol=1e-4)


def test_quantiles_lie_around_the_curve_and_a_model_without_them_says_none() -> None:
    days = HISTORY.describe_days().take(slice(14))
    usage = np.random.default_rng(0).uniform(1, 2, (3, 14, 48))
    asked = days.take(slice(1))
    assert tiny_predictor().fit(usage, days).predict_quantiles(asked, (0.25, 0.5, 0.75)) is None
    quantiles = tiny_quantile_predictor().fit(usage, days).predict_quantiles(asked, (0.25, 0.5, 0.75))
    expected = tiny_predictor().fit(usage, days).predict_curve(asked)[..., None] * np.array([0.9, 1.0, 1.1])
    assert quantiles is not None
    np.testing.assert_allclose(quantiles, expected, rtol=1e-5)


class _AnswersNaN:
    levels = (0.25, 0.75)

    def answer(self, contexts: np.ndarray) -> np.ndarray:
        return np.full((len(contexts), 2, HORIZON), np.nan)

    def expected(self, answer: np.ndarray) -> np.ndarray:
        return np.asarray(answer.mean(axis=1))

    def at_levels(self, answer: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
        return np.moveaxis(answer, 1, -1)


def test_a_curve_without_an_answer_takes_last_week(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("forecast.foundation_model.load_model", lambda path: _AnswersNaN())
    days = HISTORY.describe_days().take(slice(14))
    usage = np.random.default_rng(0).uniform(1, 2, (3, 14, 48))
    curve = tiny_predictor().fit(usage, days).predict_curve(days)
    last_week = np.tile(usage[:, 7:], (1, 2, 1))
    np.testing.assert_array_equal(curve, last_week)
    said = [record for record in caplog.records if "the foundation model answered NaN" in record.message]
    assert [record.__dict__["series"] for record in said] == [3]
    quantiles = tiny_predictor().fit(usage, days).predict_quantiles(days, (0.25, 0.75))
    assert quantiles is not None
    np.testing.assert_array_equal(quantiles, np.stack([last_week, last_week], axis=-1))
