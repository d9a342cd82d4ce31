"""One model on one day: sums over the pods that ran, at the replicas of the day, silent where it knows nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.calendar import SLOTS_PER_DAY
from forecast.model import PEAK_QUANTILES
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from forecast_scheduler.reports.peaks_report.day_figures import read_day, runs_of_day, runs_that_stay
from tests.forecast_scheduler.reports.peaks_report.nights import N_DAYS, history, model_at

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


def test_pods_of_a_job_stay_until_their_run_ends() -> None:
    known, model = history(), model_at(DAY)
    owner = ServiceKey("shop", "CronJob", "late")
    seconds = model.run_seconds.copy()
    seconds[1] = 3 * 3600
    model = replace(model, services=(model.services[0], owner, *model.services[2:]), run_seconds=seconds)
    end = known.n_days * SLOTS_PER_DAY
    since = np.where(known.placements.service == 1, end - 2, 0)  # an hour before midnight
    known = replace(
        known,
        services=(known.services[0], owner, *known.services[2:]),
        placements=replace(known.placements, first=since),
    )
    stay = runs_that_stay(known, model)
    assert set(stay.end[stay.service == 1].tolist()) == {4}, "two hours of its three are left"
    assert set(stay.end[stay.service != 1].tolist()) == {SLOTS_PER_DAY}
    unknown = runs_that_stay(known, model_at(DAY))
    assert set(unknown.end.tolist()) == {SLOTS_PER_DAY}, "the model does not know the CronJob"


def test_pods_of_a_job_owner_are_those_expected_by_the_clock() -> None:
    known, model, day = history(), model_at(DAY), history().days[DAY]
    owner = ServiceKey("shop", "CronJob", "nightly")
    by_clock = np.zeros_like(model.replicas_dated)
    by_clock[1, :, 4:10] = 1.0
    services = (model.services[0], owner, *model.services[2:])
    model = replace(model, services=services, replicas_dated=by_clock)
    reading = read_day(model, replace(known, services=services), day, runs_of_day(known, DAY), REPLICAS, widen=1.0)
    load = reading.service_mean[1, CPU]
    assert (load[4:10] > 0).all()
    assert not load[:4].any() and not load[10:].any()
    assert load[4:10] == pytest.approx(model.usage((day,))[1, CPU, 0, 4:10], rel=1e-5), "one pod does its own work"
