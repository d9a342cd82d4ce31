"""What every predictor must do. Adding a file to forecast/predictors is enough to have it tested here."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from forecast.calendar import Days
from forecast.predictors import Predictor, discover
from tests.forecast.foundation.tiny_models import tiny_predictor, tiny_quantile_predictor

Kind = Callable[[], Predictor]
FOUNDATION_MODEL = pytest.param(tiny_predictor, id="foundation_model")
PREDICTORS = [*(pytest.param(kind, id=name) for name, kind in discover().items()), FOUNDATION_MODEL]
LEVELS = (0.05, 0.5, 0.9)


class SpreadPredictor(Predictor):
    """Says quantiles that need the clean-up: falling, negative, and not a number for the first series."""

    name = "spread"

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        self.level_ = np.nan_to_num(usage).mean(axis=(1, 2))

    def _predict_curve(self, horizon: Days) -> Floats:
        return np.broadcast_to(self.level_[:, None, None], (len(self.level_), len(horizon), 48))

    def _predict_quantiles(self, horizon: Days, levels: tuple[float, ...]) -> Floats:
        steps = np.linspace(2.0, -1.0, len(levels))
        quantiles = self._predict_curve(horizon)[..., None] * steps
        quantiles[0, 0, 0] = np.nan
        return quantiles


SAY_QUANTILES = [pytest.param(SpreadPredictor, id="spread"), pytest.param(tiny_quantile_predictor, id="quantiles")]
every_predictor = pytest.mark.parametrize("kind", PREDICTORS)


def some_days(n_days: int, first_weekday: int = 0) -> Days:
    weekday = (np.arange(n_days) + first_weekday) % 7
    return Days(weekday, np.maximum(weekday - 4, 0))


def some_usage(n_series: int = 6, n_days: int = 21, seed: int = 0) -> Floats:
    """Evening peaks, quiet weekends, a level of its own and noise per series."""
    rng = np.random.default_rng(seed)
    shape = 0.2 + np.exp(-(((np.arange(48) - 40) / 6) ** 2))
    week = np.where(np.arange(n_days) % 7 >= 5, 0.6, 1.0)
    level = np.exp(rng.normal(0, 2, n_series))
    noise = np.exp(rng.normal(0, 0.1, (n_series, n_days, 48)))
    return level[:, None, None] * week[None, :, None] * shape * noise


def curves(kind: Kind, usage: Floats, horizon_days: int = 7) -> Floats:
    n_days = usage.shape[1]
    horizon = some_days(horizon_days, first_weekday=n_days % 7)
    return kind().fit(usage, some_days(n_days)).predict_curve(horizon)


@every_predictor
def test_curves_are_finite_and_not_negative(kind: Kind) -> None:
    usage = some_usage()
    predictor = kind().fit(usage, some_days(21))
    curve = predictor.predict_curve(some_days(14))
    assert curve.shape == (6, 14, 48)
    assert np.isfinite(curve).all()
    assert (curve >= 0).all()


@every_predictor
def test_a_repeating_week_is_forecast_as_it_was(kind: Kind) -> None:
    week = some_usage(3, 7, seed=3)
    usage = np.tile(week, (1, 4, 1))
    error = np.abs(curves(kind, usage) - week).mean() / week.mean()
    assert error < 0.2


@every_predictor
def test_the_input_is_left_as_it_was(kind: Kind) -> None:
    usage = some_usage()
    usage[0, 3] = np.nan
    before = usage.copy()
    curves(kind, usage)
    np.testing.assert_array_equal(usage, before)


@every_predictor
def test_a_fitted_predictor_survives_pickling(kind: Kind) -> None:
    predictor = kind().fit(some_usage(), some_days(21))
    again = pickle.loads(pickle.dumps(predictor))
    np.testing.assert_array_equal(again.predict_curve(some_days(7)), predictor.predict_curve(some_days(7)))


@every_predictor
def test_fitting_twice_gives_the_same_and_clones_are_unfitted(kind: Kind) -> None:
    usage = some_usage()
    np.testing.assert_array_equal(curves(kind, usage), curves(kind, usage))
    assert clone(kind()).get_params() == kind().get_params()


@every_predictor
def test_the_unit_does_not_matter(kind: Kind) -> None:
    usage = some_usage()
    np.testing.assert_allclose(curves(kind, 1e6 * usage), 1e6 * curves(kind, usage), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [
        *(pytest.param(k, 1e-9, id=n) for n, k in discover().items() if not k.pooled),
        pytest.param(tiny_predictor, 1e-5, id="foundation_model"),  # a batch of float32 rounds as it likes
    ],
)
def test_one_series_alone_gets_the_same_unless_the_predictor_pools(kind: Kind, tolerance: float) -> None:
    usage = some_usage()
    together = curves(kind, usage)
    alone = np.concatenate([curves(kind, usage[i : i + 1]) for i in range(len(usage))])
    np.testing.assert_allclose(alone, together, rtol=tolerance)


@every_predictor
def test_gaps_and_empty_series_are_bridged(kind: Kind) -> None:
    usage = some_usage()
    usage[0, 5:8] = np.nan
    usage[1, :, 2:4] = np.nan
    usage[2] = np.nan
    usage[3] = 0.0
    usage[4, -1] = np.nan
    curve = curves(kind, usage)
    assert np.isfinite(curve).all()
    assert (curve[2] == 0).all()
    assert (curve[3] == 0).all()
    typical = np.nanmean(usage[4])
    assert 0.3 * typical < curve[4].mean() < 3 * typical


@every_predictor
@pytest.mark.parametrize("n_days", [1, 2, 5, 8])
def test_short_histories_are_served(kind: Kind, n_days: int) -> None:
    usage = some_usage(3, n_days)
    curve = curves(kind, usage)
    assert np.isfinite(curve).all()
    assert (curve.mean(axis=(1, 2)) > 0.2 * usage.mean(axis=(1, 2))).all()


@every_predictor
def test_no_series_at_all_is_no_error(kind: Kind) -> None:
    assert curves(kind, np.zeros((0, 10, 48))).shape == (0, 7, 48)


@pytest.mark.parametrize("kind", [*PREDICTORS, *SAY_QUANTILES])
def test_quantiles_ascend_in_the_series_unit_or_there_are_none(kind: Kind) -> None:
    usage = some_usage()
    said = [kind().fit(one, some_days(21)).predict_quantiles(some_days(9), LEVELS) for one in (usage, 1e6 * usage)]
    quantiles, million = said
    if quantiles is None or million is None:
        assert kind not in (SpreadPredictor, tiny_quantile_predictor)
        return
    assert quantiles.shape == (6, 9, 48, len(LEVELS))
    assert np.isfinite(quantiles).all()
    assert (quantiles >= 0).all()
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    assert quantiles[..., -1].max() > 0
    np.testing.assert_allclose(million, 1e6 * quantiles, rtol=1e-6)


@pytest.mark.parametrize("levels", [(0.5, 0.5), (0.9, 0.1), (0.0, 0.5), (0.5, 1.0)])
def test_levels_that_are_no_ascending_probabilities_are_refused(levels: tuple[float, ...]) -> None:
    predictor = SpreadPredictor().fit(some_usage(), some_days(21))
    with pytest.raises(InputError, match="must be above 0 and below 1, ascending"):
        predictor.predict_quantiles(some_days(7), levels)


@every_predictor
def test_wrong_shapes_are_refused_in_one_sentence(kind: Kind) -> None:
    with pytest.raises(InputError, match="must be"):
        kind().fit(np.zeros((2, 3, 24)), some_days(3))
    with pytest.raises(InputError, match="must be"):
        kind().fit(np.zeros((2, 3, 48)), some_days(4))
