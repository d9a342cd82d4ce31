"""What a fitted model knows: levels, trends, shifts, replica changes, holidays, young services; and no future."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import numpy as np
import pytest

from base.errors import InputError, NotEnoughHistory
from forecast.calendar import Calendar
from forecast.fit import fit
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.model_artefact import artefact_of
from forecast.resources import CPU, MEMORY
from tests.synthetic import evening_shape, scaled, synthetic_history


@lru_cache(maxsize=1)
def ordinary() -> PeakModel:
    """The model of the synthetic history as it is."""
    return fit(synthetic_history(n_services=12))


@lru_cache(maxsize=1)
def eventful() -> PeakModel:
    """The model of a history in which something happened to each of these services, and to the other seven nothing:

    0 twice the replicas for two days    3 zeros only
    1 grows by 5 % a day                 6 without a sample    7 three days old
    """
    history = synthetic_history(n_services=12, noise=0.02)
    history = scaled(history, 1, 1.05 ** np.arange(28))
    replicas, usage = history.replicas.copy(), history.usage_per_pod.copy()
    replicas[0, -2:] = 8
    usage[0, :, -2:] /= 2
    usage[0, MEMORY, -2:] *= 2
    usage[3] = 0
    usage[6], replicas[6] = np.nan, 0
    usage[7, :, :25], replicas[7, :25] = np.nan, 0
    return fit(replace(history, replicas=replicas, usage_per_pod=usage))


def two_nights() -> History:
    """A history with one night more than `first_night` knows."""
    return synthetic_history(n_services=3, n_days=17)


@lru_cache(maxsize=1)
def first_night() -> PeakModel:
    """The model of the night before last."""
    return fit(two_nights().before(16))


@lru_cache(maxsize=1)
def next_night() -> PeakModel:
    """The model of last night, that knows the one before."""
    return fit(two_nights(), previous=first_night())


@lru_cache(maxsize=1)
def fresh() -> PeakModel:
    """The model of last night, that knows no other."""
    return fit(two_nights())


def tomorrow(model: PeakModel) -> np.ndarray:
    """Expected CPU curve of the first day: (n_services, 48)."""
    return model.usage((model.first_day,))[:, CPU, 0]


def test_an_ordinary_day_is_forecast_within_a_few_percent() -> None:
    expected = np.arange(1.0, 13.0)[:, None] * evening_shape()
    assert np.abs(tomorrow(ordinary()) / expected - 1).mean() < 0.05


def test_a_service_that_was_away_for_a_month_is_expected_as_it_was() -> None:
    history = synthetic_history(n_services=12, n_days=42, noise=0.02)
    replicas, usage = history.replicas.copy(), history.usage_per_pod.copy()
    usage[2, :, -30:], replicas[2, -30:] = np.nan, 0
    model = fit(replace(history, replicas=replicas, usage_per_pod=usage))
    assert tomorrow(model)[2].mean() / (3 * evening_shape()).mean() == pytest.approx(1, abs=0.3)
    assert (model.usage_quantiles[2, CPU] > 0).all()


def test_weekends_are_known() -> None:
    model = ordinary()
    days = model.calendar.horizon(model.first_day, 7)
    peaks = model.usage(days)[0, CPU].max(axis=1)
    assert peaks[5] / peaks[1] == pytest.approx(0.7, abs=0.06)


def test_peak_quantiles_stand_above_each_other_and_about_the_truth() -> None:
    model = ordinary()
    peaks = model.service_peaks(model.first_day)[:, CPU]
    assert (peaks[:, 1] >= peaks[:, 0]).all()
    truth = synthetic_history(n_services=12).usage_per_pod[:, CPU, 21].max(axis=1)
    assert np.abs(peaks[:, 0] / truth - 1).mean() < 0.1
    assert len(PEAK_QUANTILES) == peaks.shape[1]


def test_a_trend_of_five_percent_a_day_is_not_forecast_as_last_week() -> None:
    truth = 2.0 * 1.05**28
    last_week = 2.0 * 1.05**21
    forecast = tomorrow(eventful())[1].max()
    assert abs(forecast - truth) < 0.5 * abs(last_week - truth)


def test_load_is_shared_by_the_replicas_there_are_now() -> None:
    model = eventful()
    assert model.reference_replicas[0] == 8
    assert tomorrow(model)[0].max() == pytest.approx(0.5, rel=0.1)
    share = model.load_share(np.full(12, 16.0))
    assert share[0, CPU] == pytest.approx(0.5) and share[0, MEMORY] == 1.0


def test_a_service_three_days_old_has_a_weekend() -> None:
    model = eventful()
    monday = tomorrow(model)[7]
    assert np.abs(monday.max() / 8.0 - 1) < 0.25
    saturday = model.usage((model.first_day + timedelta(days=5),))[7, CPU, 0].max()
    assert saturday < 0.9 * monday.max()


def test_a_service_without_a_sample_is_served_from_its_request() -> None:
    model = eventful()
    assert tomorrow(model)[6].max() == pytest.approx(7.0, rel=0.2)
    assert model.usage_from_requests(4.0, 4.0, (model.first_day,))[CPU].max() == pytest.approx(8.0, rel=0.2)


def test_a_service_with_zeros_only_is_forecast_as_zero() -> None:
    model = eventful()
    assert (model.usage_dated[3] == 0).all() and (model.service_peaks(model.first_day)[3] == 0).all()


@lru_cache(maxsize=1)
def sparse() -> PeakModel:
    """The model of a history in which nothing measures the last resource, and service 3 is idle but for rare bursts."""
    history = synthetic_history(n_days=15)
    usage = history.usage_per_pod.copy()
    usage[3] = 0
    usage[3, :, 5::9, 20] = 4.0
    usage[:, 4] = np.nan
    return fit(replace(history, usage_per_pod=usage, node_usage=_without(history.node_usage, 4)))


def test_a_resource_nobody_measures_stays_unknown() -> None:
    model = sparse()
    assert np.isnan(model.usage_dated[:, 4]).all() and np.isfinite(model.usage_dated[:, :4]).all()


def _without(table: np.ndarray, resource: int) -> np.ndarray:
    table = table.copy()
    table[:, resource] = np.nan
    return table


@pytest.mark.parametrize("n_days", [1, 8, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 6, 15))])
def test_short_histories_give_a_finite_model(n_days: int) -> None:
    model = fit(synthetic_history(n_days=n_days))
    assert np.isfinite(model.usage_dated).all() and np.isfinite(model.peak_factor).all()
    assert np.abs(tomorrow(model).max(axis=1) / np.arange(1.0, 7.0) - 1).mean() < 0.25
    artefact_of(model, datetime(2026, 6, 1, tzinfo=UTC))  # refuses whatever is not finite


def test_no_history_is_refused_with_the_way_out() -> None:
    with pytest.raises(NotEnoughHistory, match="export a longer history"):
        synthetic_history(n_days=5).before(0)


def test_the_future_cannot_reach_a_model_fitted_before_it() -> None:
    history = two_nights()
    other = replace(history, usage_per_pod=history.usage_per_pod.copy(), node_usage=history.node_usage.copy())
    other.usage_per_pod[:, :, 16:] *= 7
    other.node_usage[:, :, 16:] *= 7
    assert_same(first_night(), fit(other.before(16)))


def test_a_fit_is_deterministic_and_leaves_its_input_alone() -> None:
    history = two_nights()
    before = history.usage_per_pod.copy()
    assert_same(fit(history), fresh())
    np.testing.assert_array_equal(before, history.usage_per_pod)


def test_the_next_night_keeps_most_predictors_and_comes_to_a_similar_forecast() -> None:
    np.testing.assert_allclose(tomorrow(next_night()), tomorrow(fresh()), rtol=0.15)


def assert_same(one: PeakModel, other: PeakModel) -> None:
    for name in ("usage_dated", "scenario_deviation", "usage_day_type", "peak_factor", "shared_std", "node_z"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_service_that_is_idle_but_for_rare_bursts_has_finite_factors() -> None:
    model = sparse()
    factors, peaks = model.peak_factor[:, :4], model.service_peaks(model.first_day)[3, :4]
    assert np.isfinite(factors).all() and (factors <= 101).all()
    assert (peaks >= 0).all()


def test_the_days_around_a_holiday_are_placed_for_as_ordinary_days() -> None:
    # Whit Monday is the fifth day of the horizon; it is quiet, the days around it are not.
    calendar = Calendar("Europe/Berlin", "DE")
    factor = np.where(np.arange(17) == 10, 0.2, 1.0)
    history = synthetic_history(noise=0.01, n_days=17, calendar=calendar)
    for service in range(6):
        history = scaled(history, service, factor)
    model = fit(history)
    days = model.calendar.horizon(model.first_day, 6)
    assert days[4] == date(2026, 5, 25)
    curves, _ = model.placement_curves(days)
    peaks = curves[:, CPU, 0].max(axis=2) / np.arange(1.0, 7.0)[:, None]
    assert (peaks[:, 0] > 0.9).all() and (peaks[:, 5] > 0.9).all() and (peaks[:, 4] < 0.6).all()


def test_weights_of_the_night_before_are_matched_by_the_names_of_the_predictors() -> None:
    first = first_night()
    names = first.info["predictors"]
    turned = replace(
        first,
        predictor_weights=first.predictor_weights[:, :, ::-1],
        info={**first.info, "predictors": names[::-1]},
    )
    unknown = replace(first, info={**first.info, "predictors": ["oracle", *names[1:]]})
    of_turned, of_unknown = (fit(two_nights(), previous=model) for model in (turned, unknown))
    np.testing.assert_array_equal(next_night().usage_dated, of_turned.usage_dated)
    np.testing.assert_array_equal(of_unknown.usage_dated, fresh().usage_dated)


def test_a_history_without_one_measured_value_is_refused() -> None:
    history = synthetic_history(n_days=8)
    nothing = np.full_like(history.usage_per_pod, np.nan)
    unmeasured = replace(history, usage_per_pod=nothing, node_usage=np.full_like(history.node_usage, np.nan))
    with pytest.raises(InputError, match="nothing to learn from"):
        fit(unmeasured)
