"""Resources that only nodes are measured for are judged by the peaks of nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.node_forecast import node_peaks_of
from forecast.resources import CPU, LOG
from forecast.service_key import ServiceKey
from testing.clusters.constructed import constructed
from trainer.gate.evidence import compare, node_only
from trainer.gate.gate_run import run_gate
from trainer.gate.gate_verdict import GateVerdict

N_DAYS, N_NODES, N_SERVICES = 16, 24, 40


@lru_cache(maxsize=1)
def history() -> History:
    """Log bytes are counted per node only; pods move, so that last week says little about a node."""
    return constructed(n_services=N_SERVICES, n_nodes=N_NODES, n_days=N_DAYS, noise=0.03)[0]


@lru_cache(maxsize=4)
def good_at(n_days: int) -> PeakModel:
    return fit(history().before(n_days), FitOptions(rehearsal_weeks=1))


def good(known: History, previous: PeakModel | None) -> PeakModel:
    return good_at(known.n_days)


def log_times(factor: float, known: History) -> PeakModel:
    """A recipe that expects so many times the log bytes."""
    model = good_at(known.n_days)
    arrays = {name: getattr(model, name).copy() for name in ("usage_dated", "usage_day_type")}
    for array in arrays.values():
        array[:, LOG] *= np.float32(factor)
    return replace(model, **arrays)


def without_services(model: PeakModel, n: int) -> PeakModel:
    """The model as if it had never heard of the first services."""
    others = tuple(ServiceKey("gone", "Deployment", str(i)) for i in range(n))
    return replace(model, services=(*others, *model.services[n:]))


def test_the_same_recipe_passes_and_says_that_nodes_were_compared() -> None:
    assert node_only(history(), 28).tolist() == [False, False, False, False, True]
    report = run_gate(history(), good_at(N_DAYS - 1), good)
    log = report.results["log"]
    assert log.verdict is GateVerdict.PASSED, report.lines()
    assert log.candidate is not None and log.candidate == log.current and log.candidate.n == N_NODES
    assert f"passed on {N_NODES} node-days" in log.reason and log.days == history().days[-1:]
    assert f"on {N_SERVICES} series-days" in report.results["cpu"].reason


@pytest.mark.parametrize("factor", [5.0, 0.2])
def test_a_recipe_five_times_off_is_held_back(factor: float) -> None:
    report = run_gate(history(), good_at(N_DAYS - 1), lambda known, previous: log_times(factor, known))
    assert report.results["log"].verdict is GateVerdict.HELD_BACK, report.lines()
    assert "node-days" in report.results["log"].reason and "above the" in report.results["log"].reason
    assert report.results["cpu"].verdict is GateVerdict.PASSED


def test_services_and_nodes_are_matched_by_name() -> None:
    model, days = good_at(N_DAYS - 1), history().days[-1:]
    plain = node_peaks_of(model, history(), days)
    nodes, services = np.arange(N_NODES)[::-1], np.arange(N_SERVICES)[::-1]
    back = np.argsort(services)
    runs = history().placements
    turned = replace(
        history(),
        nodes=tuple(history().nodes[i] for i in nodes),
        services=tuple(history().services[i] for i in services),
        placements=replace(runs, node=N_NODES - 1 - runs.node, service=back[runs.service]),
    )
    np.testing.assert_allclose(node_peaks_of(model, turned, days)[::-1], plain, rtol=1e-12)


def test_nodes_with_pods_or_names_unknown_to_the_model_are_left_out() -> None:
    model, days = good_at(N_DAYS - 1), history().days[-1:]
    plain = node_peaks_of(model, history(), days)
    runs = history().placements.between((N_DAYS - 1) * 48, N_DAYS * 48)
    other = replace(without_services(model, 1), nodes=("unheard-of", *model.nodes[1:]))
    found = node_peaks_of(other, history(), days)
    out = np.zeros(N_NODES, dtype=np.bool_)
    out[runs.node[runs.service == 0]] = True
    out[0] = True
    assert 1 < out.sum() < N_NODES and np.isnan(found[out]).all()
    np.testing.assert_array_equal(found[~out], plain[~out])
    evidence = compare(history(), other, model, days)["log"]
    assert evidence.of_nodes and evidence.current.n == evidence.candidate.n == (~out).sum()


def test_a_service_without_a_curve_of_a_resource_is_unknown_there_alone() -> None:
    model, days = good_at(N_DAYS - 1), history().days[-1:]
    arrays = {name: getattr(model, name).copy() for name in ("usage_dated", "usage_day_type")}
    for array in arrays.values():
        array[0, LOG] = np.nan
    found = node_peaks_of(replace(model, **arrays), history(), days)
    assert np.isfinite(found[:, CPU]).all() and np.isnan(found[:, LOG]).any() and np.isfinite(found[:, LOG]).any()
    for array in arrays.values():
        array[:, LOG] = np.nan  # all of the load is in the base then
    assert np.isfinite(node_peaks_of(replace(model, **arrays), history(), days)).all()


def test_a_node_measured_in_part_or_too_new_for_last_week_does_not_count() -> None:
    usage = history().node_usage.copy()
    usage[0, LOG, -1, :5] = np.nan
    usage[1, LOG, :-4] = np.nan
    evidence = compare(
        replace(history(), node_usage=usage), good_at(N_DAYS - 1), good_at(N_DAYS - 1), history().days[-1:]
    )
    assert evidence["log"].candidate.n == N_NODES - 2


def test_a_single_measured_pod_makes_services_the_series() -> None:
    usage = history().usage_per_pod.copy()
    usage[0, LOG] = 1.0
    known = replace(history(), usage_per_pod=usage)
    assert not node_only(known, 28).any()
    evidence = compare(known, good_at(N_DAYS - 1), good_at(N_DAYS - 1), history().days[-1:])
    assert not evidence["log"].of_nodes and evidence["log"].candidate.n == 1
