"""A model's own answer for the last days against what was recorded: sound models pass, wrong ones are named."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from forecast.event_calendar import Event
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY
from testing.fitted_models import fitted
from tests.synthetic import synthetic_history
from trainer.gate.reproduction import TOLERATED, TOLERATED_UNSURE, Reproduction, reproductions

N_DAYS = 30


@lru_cache(maxsize=1)
def history() -> History:
    return synthetic_history(n_days=N_DAYS, n_services=4)


@lru_cache(maxsize=1)
def model() -> PeakModel:
    """The last two weeks as they were, with a small error: what is tested is the comparison, not a fit."""
    known = history()
    fit_of_three_days = fitted(known.before(3))
    last = known.usage_per_pod[:, :, -14:]
    week = (last[:, :, :7] + last[:, :, 7:]) / 2
    by_type = [week[:, :, kind == known.describe_days().day_type[-7:]].mean(axis=2) for kind in (0, 1, 2, 2)]
    none = np.zeros_like(fit_of_three_days.own_std)
    return replace(
        fit_of_three_days,
        first_day=known.days[-1] + timedelta(days=1),
        trained_days=known.n_days,
        usage_dated=np.tile(week, (1, 1, 2, 1)),
        usage_day_type=np.stack(by_type, axis=2),
        own_std=none,
        shared_std=none,
        cluster_std=np.full_like(fit_of_three_days.cluster_std, 0.02),
    )


def with_cpu(factor: Any, services: Any = slice(None)) -> PeakModel:
    """The model with another usage of CPU. factor: broadcast against (n_services, 14, 48)"""
    usage = model().usage_dated.copy()
    usage[services, CPU] *= np.float32(factor)
    return replace(model(), usage_dated=usage)


def with_saturated_error() -> PeakModel:
    """As one-off owners made it: the error common to all services is as large as the load."""
    cluster_std, node_z = model().cluster_std.copy(), model().node_z.copy()
    cluster_std[CPU], node_z[CPU] = 1.0, (3.08, 4.95)
    return replace(model(), cluster_std=cluster_std, node_z=node_z)


def of_cpu(known: History, found: PeakModel) -> Reproduction:
    return reproductions(known, found)["cpu"]


def test_a_sound_model_reproduces_every_resource() -> None:
    found = reproductions(history(), model())
    assert not any(one.fails for one in found.values()), [one.reason() for one in found.values()]
    assert found["cpu"].tolerated == TOLERATED and found["cpu"].hours == (20.0, 20.0)
    for low, high in (found["cpu"].level, found["cpu"].peak):
        assert 0.9 < low <= high < 1.1


def test_an_error_term_as_large_as_the_load_fails_by_the_peaks_of_nodes() -> None:
    found = of_cpu(history(), with_saturated_error())
    assert found.fails and 3.5 < found.peak[0] < 4.5 and found.level == of_cpu(history(), model()).level
    assert found.reason().endswith("(the sum over the pods is right, the error that is added to it is not)")
    assert not reproductions(history(), with_saturated_error())["memory"].fails


@pytest.mark.parametrize(("factor", "side"), [(4.0, "at least"), (0.25, "at most"), (0.0, "at most 0.")])
def test_a_wrong_level_names_the_services_that_make_it(factor: float, side: str) -> None:
    found = of_cpu(history(), with_cpu(factor))
    assert found.fails and f"the mean load of the cluster is {side}" in found.reason()
    assert [one.service for one in found.services] == [f"shop/Deployment/service-{i}" for i in (3, 2, 1)]
    assert "most of it by shop/Deployment/service-3" in found.reason()


def test_one_large_service_at_zero_is_named_first() -> None:
    found = of_cpu(history(), with_cpu(0.0, 3))
    assert found.fails and found.services[0].service == "shop/Deployment/service-3"
    assert found.services[0].predicted == 0.0 < found.services[0].recorded


def test_a_wrong_base_is_told_from_wrong_pods() -> None:
    base = model().node_base.copy()
    base[:, CPU] += 20.0
    assert "of it are base load and corrections" in of_cpu(history(), replace(model(), node_base=base)).reason()


def test_a_peak_at_another_hour_fails() -> None:
    usage = np.roll(model().usage_dated, 12, axis=-1)
    found = of_cpu(history(), replace(model(), usage_dated=usage))
    assert found.elsewhere and "the cluster peaks at 02:00 where 20:00 was recorded" in found.reason()


def test_an_hour_is_no_other_hour() -> None:
    usage = np.roll(model().usage_dated, 2, axis=-1)
    assert not of_cpu(history(), replace(model(), usage_dated=usage)).fails


def test_flat_days_have_no_hour() -> None:
    flat = model().usage_dated.copy()
    flat[:] = flat.mean(axis=-1, keepdims=True)
    assert not of_cpu(history(), replace(model(), usage_dated=flat)).elsewhere


def changed(factor: Any, days: slice) -> History:
    """The history with other figures on some days."""
    arrays = {name: getattr(history(), name).copy() for name in ("usage_per_pod", "node_usage", "node_pod_usage")}
    for array in arrays.values():
        array[:, :, days] *= np.float32(factor)
    return replace(history(), **arrays)


@pytest.mark.parametrize(
    ("case", "factor", "days"),
    [
        ("grew threefold today", 3.0, slice(-1, None)),
        ("an outage today", 0.0, slice(-1, None)),
        ("an outage three days ago", 0.0, slice(-3, -2)),
        ("a quiet week", 0.5, slice(-7, None)),
        ("a quiet fortnight", 0.5, slice(-14, None)),
        ("nothing measured for two days", np.nan, slice(-2, None)),
        ("twice as much until last week", 2.0, slice(0, -7)),
        ("nothing measured at all", np.nan, slice(None)),
    ],
)
def test_what_happened_to_the_cluster_is_no_fault_of_the_model(case: str, factor: float, days: slice) -> None:
    found = of_cpu(changed(factor, days), model())
    assert not found.fails, (case, found)


@pytest.mark.parametrize("factor", [3.0, 0.3])
def test_an_outage_hides_no_fault(factor: float) -> None:
    assert of_cpu(changed(0.0, slice(-3, -2)), with_cpu(factor)).fails


def test_pods_that_doubled_today_halve_their_load() -> None:
    known = history()
    replicas, usage = known.replicas.copy(), known.usage_per_pod.copy()
    replicas[:, -1] *= 2
    usage[:, :MEMORY, -1] /= 2
    runs, n = known.placements, len(known.placements.pod)
    twice = replace(
        runs,
        pod=np.concatenate([runs.pod, runs.pod + n]),
        service=np.tile(runs.service, 2),
        node=np.tile(runs.node, 2),
        first=np.concatenate([runs.first, np.full(n, (N_DAYS - 1) * 48)]),
        end=np.tile(runs.end, 2),
    )
    at_eight = replace(with_cpu(0.5), reference_replicas=model().reference_replicas * 2)
    found = of_cpu(replace(known, replicas=replicas, usage_per_pod=usage, placements=twice), at_eight)
    assert not found.fails and found.level[1] < 1.05


def test_a_pod_of_five_minutes_counts_for_five_minutes() -> None:
    """Placements know half hours only: short pods would count several times."""
    known = history()
    sixth = np.float32(1 / 6)
    on_nodes = (known.node_usage - np.float32(0.5)) * sixth + np.float32(0.5)
    short = replace(known, replicas=known.replicas * sixth, node_usage=on_nodes)
    assert not of_cpu(short, replace(model(), autoscaled=np.ones_like(model().autoscaled))).fails


def test_nodes_that_are_not_measured_are_left_out() -> None:
    usage = history().node_usage.copy()
    usage[2:, :, :-1] = np.nan
    assert not of_cpu(replace(history(), node_usage=usage), model()).fails


def test_without_measured_nodes_services_are_compared() -> None:
    known = replace(history(), node_usage=np.full_like(history().node_usage, np.nan))
    assert not of_cpu(known, model()).fails
    assert of_cpu(known, with_cpu(2.0)).fails and np.isnan(of_cpu(known, with_cpu(2.0)).peak).all()


def test_a_moving_level_and_a_young_history_are_given_more_room() -> None:
    assert of_cpu(history(), with_cpu(1.7)).fails
    grown = of_cpu(changed(1.5, slice(-7, None)), with_cpu(1.5 * 1.7))
    assert grown.tolerated == TOLERATED_UNSURE and not grown.fails
    young = of_cpu(history().before(N_DAYS, keep=10), with_cpu(1.7))
    assert young.tolerated == TOLERATED_UNSURE and not young.fails


def test_days_of_events_are_left_out() -> None:
    last = history().days[-7]
    sale = Event(name="sale", first_day=last, last_day=history().days[-1])
    month_before = Event(name="sale", first_day=history().days[0], last_day=history().days[8])
    found = of_cpu(replace(history(), events=(sale, month_before)), with_cpu(4.0))
    assert not found.fails and np.isnan(found.level).all()


def test_a_difference_of_a_hundredth_of_the_capacity_is_none() -> None:
    idle = replace(history(), capacity=np.full_like(history().capacity, 4e4))
    assert not of_cpu(idle, with_cpu(4.0)).fails


def test_figures_are_plain_json() -> None:
    found = reproductions(history(), with_cpu(4.0))["cpu"].to_json()
    assert found["reproduced"] is False and found["recorded_hour"] == 20.0
    assert set(found) == {"reproduced", "level", "peak", "predicted_hour", "recorded_hour", "services"}
    nothing = Reproduction("log").to_json()
    assert nothing["reproduced"] is True and nothing["level"] == [None, None]
