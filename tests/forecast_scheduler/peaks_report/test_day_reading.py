"""One model on one day: sums over the pods that ran, at the replicas of the day, silent where it knows nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.calendar import SLOTS_PER_DAY
from forecast.model import PEAK_QUANTILES
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from forecast_scheduler.peaks_report.day_reading import read_day, runs_of_day, runs_that_stay
from tests.forecast_scheduler.peaks_report.nights import N_DAYS, history, model_at

DAY = N_DAYS - 1
REPLICAS = history().replicas[:, DAY, 0]


def test_a_node_is_its_base_and_its_pods() -> None:
    model, known, day = model_at(DAY), history(), history().days[DAY]
    reading = read_day(model, known, day, runs_of_day(known, DAY), REPLICAS, widen=1.0)
    usage, base = model.usage_on_node((day,)), model.base((day,))
    for node in range(len(known.nodes)):
        expected = base[node, :, 0].copy()
        for pod_node, service in zip(known.placements.node, known.placements.service, strict=True):
            if pod_node == node:
                expected += usage[service, :, 0]
        assert reading.node_mean[node] == pytest.approx(expected, rel=1e-4)
    assert reading.understood.all()
    # The curve of the bound is the one whose highest half hour is the bound.
    assert reading.node_bound.max(axis=2) == pytest.approx(
        reading.node_peaks[:, :, PEAK_QUANTILES.index(0.95)], rel=1e-4
    )


def test_older_models_have_wider_bounds_and_the_same_expectation() -> None:
    model, known, day = model_at(DAY), history(), history().days[DAY]
    fresh, old = (read_day(model, known, day, runs_of_day(known, DAY), REPLICAS, widen=w) for w in (1.0, 2.0))
    assert (old.node_bound > fresh.node_bound).all()
    assert (old.node_mean == fresh.node_mean).all()
    assert (old.node_peaks[..., 0] == fresh.node_peaks[..., 0]).all()


def test_twice_the_pods_share_the_load_but_not_the_memory() -> None:
    model, known, day = model_at(DAY), history(), history().days[DAY]
    usual, doubled = (
        read_day(model, known, day, runs_of_day(known, DAY), REPLICAS * n, widen=1.0).service_mean for n in (1, 2)
    )
    assert doubled[:, CPU] == pytest.approx(usual[:, CPU], rel=1e-4)
    assert doubled[:, MEMORY] == pytest.approx(2 * usual[:, MEMORY], rel=1e-4)


def test_what_the_model_does_not_know_is_left_open() -> None:
    known, day = history(), history().days[DAY]
    model = replace(
        model_at(DAY),
        nodes=("elsewhere", *known.nodes[1:]),
        services=(ServiceKey("gone", "Deployment", "x"), *known.services[1:]),
    )
    reading = read_day(model, known, day, runs_of_day(known, DAY), REPLICAS, widen=1.0)
    assert np.isnan(reading.node_mean[0]).all() and np.isfinite(reading.node_mean[1:]).all()
    assert np.isnan(reading.service_mean[0]).all() and np.isfinite(reading.service_bound[1:]).all()
    # Pods of the unknown service sit on every node.
    assert not reading.understood.any()


def test_pods_of_the_last_half_hour_stay_for_a_day() -> None:
    stay = runs_that_stay(history())
    assert len(stay.pod) == len(history().placements.pod)
    assert set(stay.first.tolist()) == {0} and set(stay.end.tolist()) == {SLOTS_PER_DAY}
