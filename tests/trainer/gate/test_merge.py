"""A resource that is kept reads on every day as the model in use said it; everything else is new."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

import numpy as np
import pytest

from forecast.calendar import Calendar
from forecast.history import History
from forecast.model import DATED_DAYS, PeakModel
from forecast.model_artefact import ARRAYS, artefact_of
from forecast.resources import CPU, DISK, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from testing.fitted_models import fitted
from tests.forecast.test_model_artefact import NOW
from tests.synthetic import synthetic_history
from trainer.gate.withheld_resources import keep_resource, widen_resource


@lru_cache(maxsize=1)
def history() -> History:
    return synthetic_history(n_days=24, n_services=4, calendar=Calendar("Europe/Berlin", "DE"))


@lru_cache(maxsize=8)
def model_at(n_days: int) -> PeakModel:
    """Cut off after so many days, with the levels of everything told apart: each resource at another scale."""
    model = fitted(history().before(n_days))
    return replace(model, usage_dated=model.usage_dated * np.float32(1 + 0.01 * n_days))


@pytest.mark.parametrize("nights", [0, 1, 3, 9])
def test_a_kept_resource_reads_as_before_and_the_others_as_new(nights: int) -> None:
    old, new = model_at(15), model_at(15 + nights)
    merged = keep_resource(new, old, "cpu")
    days = new.calendar.horizon(new.first_day, DATED_DAYS)
    others = [r for r in range(len(RESOURCES)) if r != CPU]
    np.testing.assert_allclose(merged.usage(days)[:, CPU], old.usage(days)[:, CPU], rtol=1e-6)
    np.testing.assert_array_equal(merged.usage(days)[:, others], new.usage(days)[:, others])
    for day in days:
        np.testing.assert_allclose(merged.service_peaks(day)[:, CPU], old.service_peaks(day)[:, CPU], rtol=1e-5)
        np.testing.assert_array_equal(merged.service_peaks(day)[:, others], new.service_peaks(day)[:, others])
    week = days[:7]
    np.testing.assert_allclose(
        merged.placement_curves(week)[0][:, CPU], old.placement_curves(week)[0][:, CPU], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(merged.base(days)[:, CPU], old.base(days)[:, CPU])
    np.testing.assert_array_equal(merged.replicas(days), new.replicas(days))
    assert merged.first_day == new.first_day and merged.trained_days == new.trained_days


def test_every_array_with_resources_is_kept_and_no_other_is_touched() -> None:
    """Arrays of random numbers, so that one that was forgotten cannot pass by being equal."""
    rng = np.random.default_rng(0)
    template = model_at(15)
    old, new = (
        replace(
            template, **{s.name: rng.random(getattr(template, s.name).shape, dtype=np.float32) + 0.5 for s in ARRAYS}
        )
        for _ in range(2)
    )
    new = replace(new, reference_replicas=old.reference_replicas, run_seconds=np.sort(new.run_seconds, axis=1))
    merged = keep_resource(new, old, "memory")
    for spec in ARRAYS:
        found, theirs, ours = (getattr(m, spec.name) for m in (merged, old, new))
        if "resources" not in spec.axes:
            np.testing.assert_array_equal(found, ours, err_msg=spec.name)
            continue
        at = spec.axes.index("resources")
        np.testing.assert_array_equal(found.take(MEMORY, at), theirs.take(MEMORY, at), err_msg=spec.name)
        np.testing.assert_array_equal(np.delete(found, MEMORY, at), np.delete(ours, MEMORY, at), err_msg=spec.name)
    artefact_of(merged, NOW)  # in the shape that is published


def test_services_and_nodes_are_matched_by_name_and_unknown_ones_stay_new() -> None:
    old, new = model_at(15), model_at(17)
    order = [2, 0, 3, 1]
    names = tuple(old.services[i] for i in order)
    shuffled = replace(
        old,
        services=(*names[:3], ServiceKey("shop", "Deployment", "gone")),
        nodes=tuple(reversed(old.nodes)),
        **{
            spec.name: getattr(old, spec.name)[order if spec.axes[0] == "services" else slice(None, None, -1)]
            for spec in ARRAYS
            if spec.axes[0] in ("services", "nodes")
        },
    )
    merged, plain = keep_resource(new, shuffled, "cpu"), keep_resource(new, old, "cpu")
    day = new.first_day
    np.testing.assert_array_equal(merged.service_peaks(day)[[0, 2, 3]], plain.service_peaks(day)[[0, 2, 3]])
    np.testing.assert_array_equal(merged.service_peaks(day)[1], new.service_peaks(day)[1])  # "gone" took its place
    np.testing.assert_array_equal(merged.node_base, plain.node_base)


def test_a_service_whose_resource_the_old_model_had_not_measured_stays_new() -> None:
    old, new = model_at(15), model_at(16)
    unknown = {name: getattr(old, name).copy() for name in ("usage_dated", "usage_day_type", "peak_factor")}
    for array in unknown.values():
        array[1, CPU] = np.nan
    merged = keep_resource(new, replace(old, **unknown), "cpu")
    np.testing.assert_array_equal(merged.usage_dated[1], new.usage_dated[1])
    np.testing.assert_array_equal(merged.usage_dated[0, CPU, 0], old.usage_dated[0, CPU, 1])


def test_usage_of_runs_is_kept_where_the_old_model_knows_runs() -> None:
    old, new = model_at(15), model_at(16)
    known = np.full(new.run_usage.shape, 2.0, dtype=np.float32)
    new = replace(new, run_usage=known)
    np.testing.assert_array_equal(keep_resource(new, old, "cpu").run_usage, known)
    of_old = np.where(np.arange(len(known))[:, None] == 1, np.float32(3.0), np.nan)
    merged = keep_resource(new, replace(old, run_usage=of_old), "cpu")
    assert merged.run_usage[:, CPU].tolist() == [2.0, 3.0, 2.0, 2.0]
    np.testing.assert_array_equal(merged.run_usage[:, MEMORY], known[:, MEMORY])
    np.testing.assert_array_equal(merged.run_seconds, new.run_seconds)
    np.testing.assert_array_equal(merged.run_starts, new.run_starts)


def test_a_capacity_is_kept_where_the_old_model_has_one() -> None:
    old, new = model_at(15), model_at(16)
    shape, is_second = new.node_capacity.shape, np.arange(len(new.nodes))[:, None] == 1
    fives, ones = np.full(shape, 5.0, dtype=np.float32), np.ones(shape, dtype=np.float32)
    of_old = np.broadcast_to(np.where(is_second, np.float32(3.0), np.float32(np.nan)), shape)
    old = replace(old, node_capacity=of_old, node_capacity_assumed=np.zeros_like(ones))
    merged = keep_resource(replace(new, node_capacity=fives, node_capacity_assumed=ones), old, "disk")
    assert merged.node_capacity[:3, DISK].tolist() == [5.0, 3.0, 5.0]
    assert merged.node_capacity_assumed[:3, DISK].tolist() == [1.0, 0.0, 1.0]


def test_old_usage_of_one_pod_is_carried_over_to_the_new_replica_count() -> None:
    old, new = model_at(15), model_at(15)
    doubled = replace(new, reference_replicas=new.reference_replicas * np.float32(2))
    cpu, memory = keep_resource(doubled, old, "cpu"), keep_resource(doubled, old, "memory")
    np.testing.assert_allclose(cpu.usage_dated[:, CPU], old.usage_dated[:, CPU] / 2, rtol=1e-6)
    np.testing.assert_allclose(cpu.own_std[:, CPU], old.own_std[:, CPU] / 2, rtol=1e-6)
    np.testing.assert_array_equal(cpu.peak_factor, old.peak_factor)
    np.testing.assert_array_equal(memory.usage_dated[:, MEMORY], old.usage_dated[:, MEMORY])


def test_weights_of_other_predictors_are_not_mixed_in() -> None:
    old, new = model_at(15), model_at(16)
    fewer = replace(old, predictor_weights=old.predictor_weights[..., :2], info={"predictors": ["a", "b"]})
    np.testing.assert_array_equal(keep_resource(new, fewer, "cpu").predictor_weights, new.predictor_weights)


def test_widening_raises_the_bounds_of_one_resource_alone() -> None:
    model = model_at(15)
    wide = widen_resource(model, "cpu", 1.5)
    day = model.first_day + timedelta(days=3)
    before, after = model.service_peaks(day), wide.service_peaks(day)
    np.testing.assert_allclose(after[:, CPU, 1], 1.5 * before[:, CPU, 1], rtol=1e-5)
    np.testing.assert_array_equal(after[..., 0], before[..., 0])
    np.testing.assert_array_equal(after[:, MEMORY], before[:, MEMORY])
    assert (wide.node_z >= model.node_z).all() and wide.node_z[MEMORY, 1] == model.node_z[MEMORY, 1]
    negative = replace(model, node_z=np.full_like(model.node_z, -1.0))
    assert (widen_resource(negative, "cpu", 1.5).node_z >= -1.0).all()


def test_bounds_are_kept_with_the_offsets_that_they_were_made_with() -> None:
    def with_offsets(model: PeakModel, services: float, nodes: float) -> PeakModel:
        return replace(
            model,
            service_offset=np.full_like(model.service_offset, services),
            node_offset=np.full_like(model.node_offset, nodes),
            node_bound_z=np.full_like(model.node_bound_z, nodes),
        )

    merged = keep_resource(with_offsets(model_at(16), 0.6, 0.8), with_offsets(model_at(15), 0.1, 0.2), "memory")
    others = [r for r in range(len(RESOURCES)) if r != MEMORY]
    for kept, of_old, of_new in (
        (merged.service_offset, 0.1, 0.6),
        (merged.node_offset, 0.2, 0.8),
        (merged.node_bound_z, 0.2, 0.8),
    ):
        np.testing.assert_allclose(kept[:, MEMORY], of_old)
        np.testing.assert_allclose(kept[:, others], of_new)
