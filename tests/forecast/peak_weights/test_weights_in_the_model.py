"""What the regression finds reaches the published model, and what sums pods onto nodes reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from base.arrays import Floats
from forecast.fit import FitOptions, fit
from forecast.history import History, Placements
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.model_artefact import artefact_of
from forecast.node_forecast import node_forecast
from forecast.resources import CPU, LOG
from testing.clusters.constructed import Truth, constructed
from tests.synthetic import synthetic_history

HELD_BACK = np.arange(40) % 4 == 0


@pytest.fixture(scope="module")
def fitted() -> tuple[PeakModel, History, Truth]:
    """Two weeks, log only by node, a quarter of the nodes not measured at all; the day after is held back as well."""
    history, truth = constructed(n_services=60, n_nodes=40, n_days=16, factor_share=0.4, cost_share=0.3, seed=2)
    usage = history.node_usage.copy()
    usage[HELD_BACK] = np.nan
    known = replace(history, node_usage=usage).before(15)
    return fit(known, FitOptions(rehearsal_weeks=1)), history, truth


def node_peaks(model: PeakModel, history: History, day: int) -> Floats:
    """Predicted mean peak of each node on a day, for the pods that really were there: (n_resources, n_nodes)."""
    runs = history.placements.between(day * 48, day * 48 + 48)
    return np.stack([load.mean.max(axis=1) for load in node_forecast(model, runs, (history.days[day],))])


def test_nodes_that_were_never_measured_are_forecast_by_what_sits_on_them(
    fitted: tuple[PeakModel, History, Truth],
) -> None:
    model, history, truth = fitted
    predicted, actual = node_peaks(model, history, 15), truth.nodes[:, :, 15].max(axis=2).T
    error = np.abs(predicted / actual - 1)[:, HELD_BACK]
    assert np.median(error[LOG]) < 0.1
    assert np.median(error[CPU]) < 0.1
    plain = replace(model, correction=np.ones_like(model.correction), per_pod_cost=np.zeros_like(model.per_pod_cost))
    rival = np.abs(node_peaks(plain, history, 15) / actual - 1)[:, HELD_BACK]
    assert np.median(error[CPU]) < 0.5 * np.median(rival[CPU])


def test_a_service_whose_log_nobody_measures_has_a_curve_and_plausible_peaks(
    fitted: tuple[PeakModel, History, Truth],
) -> None:
    model, history, truth = fitted
    peaks = model.service_peaks(history.days[15])[:, LOG]
    true = truth.weight[:, LOG, 14].max(axis=1)  # a workday like the held-back Tuesday
    known = model.identified[:, LOG] > 0
    assert known.mean() > 0.6 and np.isfinite(peaks).all() and (peaks[:, 0] <= peaks[:, 1]).all()
    assert np.median(np.abs(peaks[known, PEAK_QUANTILES.index(0.5)] / true[known] - 1)) < 0.1
    assert np.median(peaks[known, 1] / true[known]) < 1.3


def test_what_is_published_says_what_is_known(fitted: tuple[PeakModel, History, Truth]) -> None:
    model, _, _ = fitted
    of_log = model.info["peak_weights"]["log"]
    assert of_log["identified"] - 1 <= of_log["effective_rank"] <= of_log["services"] == 60
    assert of_log == {
        "services": 60,
        "effective_rank": of_log["effective_rank"],
        "identified": int(model.identified[:, LOG].sum()),
        "from_nodes": 60,
        "corrected": 0,
        "per_pod_cost": False,
    }
    assert model.info["peak_weights"]["cpu"]["corrected"] == (model.correction[:, CPU] != 1).sum() > 5
    assert ((model.peak_weight_error <= 0.2) >= (model.identified > 0)).all()
    assert np.isfinite(model.peak_weight_prior[:, LOG]).all()
    leans = model.identified[:, LOG] == 0
    level = model.peak_weight_prior[leans, LOG, None, None] + model.per_pod_cost[LOG]
    np.testing.assert_allclose(model.peak_weight[leans, LOG], level, rtol=1e-5)
    assert (model.peak_weight_error[leans, LOG] >= 1).all()
    artefact_of(model, datetime(2026, 6, 1, tzinfo=UTC))  # refuses NaN where none may be


def test_pods_summed_onto_nodes_are_corrected_and_services_themselves_are_not() -> None:
    model = fit(synthetic_history(n_days=8))
    correction, cost = model.correction.copy(), model.per_pod_cost.copy()
    correction[2, CPU], cost[CPU] = 1.5, 0.125
    other = replace(model, correction=correction, per_pod_cost=cost)
    day = (model.first_day,)
    np.testing.assert_array_equal(other.usage(day), model.usage(day))
    np.testing.assert_array_equal(other.service_peaks(day[0]), model.service_peaks(day[0]))
    np.testing.assert_allclose(other.usage_on_node(day)[2, CPU], 1.5 * model.usage(day)[2, CPU] + 0.125)
    half = np.full(correction.shape, 0.5)  # twice the replicas share the load, but each costs the node as much
    np.testing.assert_allclose(other.usage_on_node(day, half)[2, CPU], 0.75 * model.usage(day)[2, CPU] + 0.125)
    curves, plain = other.placement_curves(day)[0], model.placement_curves(day)[0]
    np.testing.assert_allclose(curves[2, CPU], 1.5 * plain[2, CPU] + 0.125)

    two = np.arange(2)
    runs = Placements(two, np.array([2, 3]), np.zeros(2, dtype=np.int64), 0 * two, 0 * two + 48)
    before, after = node_forecast(model, runs, day)[CPU], node_forecast(other, runs, day)[CPU]
    np.testing.assert_allclose((after.mean - before.mean)[0], 0.5 * model.usage(day)[2, CPU, 0] + 0.25)
    assert (after.mean[1:] == before.mean[1:]).all() and (after.std[0] > before.std[0]).all()


def test_the_future_reaches_no_weight() -> None:
    history, _ = constructed(n_services=20, n_nodes=8, n_days=12)
    usage = history.node_usage.copy()
    usage[:, :, 9:] *= 5
    one, other = (
        fit(h.before(9), FitOptions(rehearsal_weeks=1)) for h in (history, replace(history, node_usage=usage))
    )
    for name in ("peak_weight", "peak_weight_error", "correction", "usage_dated", "node_base"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
