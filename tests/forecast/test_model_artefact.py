"""What is published is what was fitted, and reading it gives the same answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from forecast.artefact import CorruptArtefact, ForeignArtefact
from forecast.assumed_capacity import assumed_capacities
from forecast.fit import fit
from forecast.model import HALF_HOUR_LEVELS
from forecast.model_artefact import ARRAYS, artefact_of, model_of, within_limits
from forecast.published_models import Registry
from forecast.resources import CPU, LOG
from testing.fitted_models import fitted
from tests.synthetic import synthetic_history

_OF_NODES = ("node_bound_z", "node_offset", "node_scores")
NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)


def test_a_model_comes_back_from_the_registry_as_it_was(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = fitted(synthetic_history(n_days=15))
    registry = Registry(str(tmp_path))
    registry.publish(artefact_of(model, NOW))
    loaded = model_of(registry.load(), NOW)
    for spec in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded, spec.name), getattr(model, spec.name), err_msg=spec.name)
    assert (loaded.services, loaded.nodes, loaded.first_day) == (model.services, model.nodes, model.first_day)
    assert (loaded.calendar, loaded.trained_days, loaded.info) == (model.calendar, model.trained_days, model.info)
    np.testing.assert_array_equal(loaded.service_peaks(loaded.first_day), model.service_peaks(model.first_day))


@pytest.mark.parametrize(("capacities", "loads"), [(1.6, True), (4.0, True), (7.0, False)])
def test_a_model_of_a_release_that_held_no_forecast_to_the_nodes_loads(capacities: float, loads: bool) -> None:
    """History counts usage of up to two capacities as measured, and what is forecast of it may lie beyond."""
    model = fitted(synthetic_history(n_days=8))
    usage = model.usage_dated.copy()
    usage[0, CPU] = capacities * model.node_capacity[:, CPU].max()
    artefact = artefact_of(replace(model, usage_dated=usage), NOW)
    if loads:
        np.testing.assert_array_equal(model_of(artefact, NOW).usage_dated, usage)
    else:
        with pytest.raises(CorruptArtefact, match=r"usage_dated is .*, allowed is 0 to"):
            model_of(artefact, NOW)
    held, names = within_limits(replace(model, usage_dated=usage))
    assert names == ("usage_dated",)
    assert held.usage_dated[0, CPU].max() < 1.53 * model.node_capacity[:, CPU].max()


def test_arrays_of_another_release_are_refused() -> None:
    artefact = artefact_of(fitted(synthetic_history(n_days=8)), NOW)
    fewer = replace(artefact.manifest, arrays=artefact.manifest.arrays[:-1])
    arrays = {name: array for name, array in artefact.arrays.items() if name != ARRAYS[-1].name}
    with pytest.raises(ForeignArtefact, match="train again"):
        model_of(replace(artefact, manifest=fewer, arrays=arrays), NOW)


@pytest.mark.parametrize(
    ("prefixes", "n_arrays"), [(("run_",), 4), (("node_capacity_assumed",), 1), (("service_", *_OF_NODES), 6)]
)
def test_a_model_of_an_earlier_release_loads_as_one_that_has_no_runs_assumptions_or_scores(
    prefixes: tuple[str, ...], n_arrays: int
) -> None:
    model = fitted(synthetic_history(n_days=8))
    artefact = artefact_of(model, NOW)
    before = tuple(spec for spec in ARRAYS if not spec.name.startswith(prefixes))
    assert len(before) == len(ARRAYS) - n_arrays
    arrays = {spec.name: artefact.arrays[spec.name] for spec in before}
    loaded = model_of(replace(artefact, manifest=replace(artefact.manifest, arrays=before), arrays=arrays), NOW)
    np.testing.assert_array_equal(loaded.usage_dated, model.usage_dated)
    np.testing.assert_array_equal(loaded.node_capacity, artefact.arrays["node_capacity"])
    if "service_" in prefixes:
        assert np.isnan(loaded.service_scores).all() and np.isnan(loaded.node_scores).all()
        assert (loaded.node_bound_z == model.node_z[:, -1]).all() and not loaded.node_offset.any()
    elif "run_" in prefixes:
        assert loaded.run_seconds.shape == (len(model.services), 2) and np.isnan(loaded.run_seconds).all()
        assert not loaded.run_count.any() and not loaded.run_starts.any() and np.isnan(loaded.run_usage).all()
    else:
        assert not loaded.node_capacity_assumed.any()


def test_half_hours_of_a_model_of_an_earlier_release_scatter_as_its_errors_even_beyond_a_node() -> None:
    model = fitted(synthetic_history(n_days=8))
    most = 4 * model.node_capacity[:, CPU].max()
    usage, std = model.usage_dated.copy(), model.own_std.copy()
    usage[0, CPU], std[0, CPU] = most, most
    artefact = artefact_of(replace(model, usage_dated=usage, own_std=std), NOW)
    before = tuple(spec for spec in ARRAYS if spec.name != "usage_quantiles")
    arrays = {spec.name: artefact.arrays[spec.name] for spec in before}
    older = replace(artefact, manifest=replace(artefact.manifest, arrays=before), arrays=arrays)
    quantiles = model_of(older, NOW).usage_quantiles
    np.testing.assert_allclose(quantiles[:, :, HALF_HOUR_LEVELS.index(0.5)], usage[:, :, 0], rtol=1e-6)
    assert (quantiles[0, CPU, -1] > 1.5 * most).all() and (np.diff(quantiles, axis=2) >= 0).all()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("run_seconds", [[60.0, 30.0]]),
        ("run_seconds", [[np.nan, 30.0]]),
        ("run_seconds", [[-60.0, 30.0]]),
        ("run_count", [-1.0]),
        ("run_starts", [[[-1.0]]]),
        ("run_usage", [[-0.5]]),
    ],
)
def test_runs_that_no_fit_gives_are_refused(name: str, values: list[object]) -> None:
    artefact = artefact_of(fitted(synthetic_history(n_days=8)), NOW)
    array = artefact.arrays[name].copy()
    array[0] = np.array(values[0])
    with pytest.raises(CorruptArtefact, match=name):
        model_of(replace(artefact, arrays={**artefact.arrays, name: array}), NOW)


def test_a_model_of_some_services_has_every_array_of_those_services() -> None:
    model = fitted(synthetic_history(n_days=8))
    few = model.of_services(np.array([4, 1]))
    assert few.services == (model.services[4], model.services[1])
    for spec in ARRAYS:
        whole, part = getattr(model, spec.name), getattr(few, spec.name)
        expected = whole[[4, 1]] if spec.axes[0] == "services" else whole
        np.testing.assert_array_equal(part, expected, err_msg=spec.name)


def test_a_fit_publishes_assumed_capacities_marked_beside_the_known_ones() -> None:
    history = synthetic_history(n_days=8)
    capacity = history.capacity.copy()
    capacity[:, LOG] = np.nan
    model = model_of(artefact_of(fit(replace(history, capacity=capacity)), NOW), NOW)
    assert model.node_capacity_assumed.tolist() == [[0, 0, 0, 0, 1]] * 4
    expected = assumed_capacities(replace(history, capacity=capacity))
    np.testing.assert_allclose(model.node_capacity[:, LOG], expected[:, LOG], rtol=1e-6)
    assert (model.node_capacity[:, :LOG] == 40).all()
    assert not fit(history).node_capacity_assumed.any()
