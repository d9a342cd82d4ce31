"""One model behind everything: whoever changes its expected usage changes service peaks, node peaks and placement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.composition import peak_at
from forecast.history import Placements
from forecast.model import PeakModel
from forecast.node_forecast import node_forecast
from forecast.resources import CPU, RESOURCES
from testing.fitted_models import fitted
from tests.scorer.predicted.loads import predicted_load
from tests.synthetic import synthetic_history


def node_costs(model: PeakModel) -> np.ndarray:
    """Energy growth of one pod of service 0 on a node with service 0 and on one with service 5."""
    curves, weights = model.placement_curves((model.first_day,))
    n_services, n_resources, n_curves, _, n_slots = curves.shape
    table = predicted_load(
        curves.reshape(n_services, n_resources, n_curves * n_slots),
        np.repeat(weights, n_slots),
        np.zeros((2, n_resources, n_curves * n_slots)),
        np.full((2, n_resources), 40.0),
        np.ones(len(RESOURCES)),
    )
    table.add(0, node=0)
    table.add(5, node=1)
    return table.growth(0)


def node_peak(model: PeakModel) -> float:
    pods = np.zeros(1, dtype=np.int64)
    load = node_forecast(model, Placements(pods, pods, pods, pods, pods + 48), (model.first_day,))[CPU]
    return float(peak_at(load, float(model.node_z[CPU, -1]))[0, 0])


def test_perturbing_the_model_moves_service_peaks_node_peaks_and_node_scores_alike() -> None:
    model = fitted(synthetic_history(n_days=15))
    doubled = replace(model, usage_dated=2 * model.usage_dated)
    np.testing.assert_allclose(
        doubled.service_peaks(model.first_day), 2 * model.service_peaks(model.first_day), rtol=1e-5
    )
    assert node_peak(doubled) > 1.2 * node_peak(model)
    assert (node_costs(doubled) > 3 * node_costs(model)).all()
