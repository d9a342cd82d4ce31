"""Curves as the rules get them: whose past they are made of, and what a model's arrays become."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from base.arrays import Floats
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.replay.curves import at_requests, from_model, last_week, true_future
from scorer.replay.recording import record
from scorer.replay.window import flat, replay_window
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import N_NODES, N_SERVICES, small_cluster


def flat_model(share: float = 1.0) -> PeakModel:
    """What `from_model` reads of a model, all curves constant."""

    def constant(value: float, *shape: int) -> Floats:
        return np.full(shape, value)

    model: Any = SimpleNamespace(
        usage_on_node=lambda days, share: constant(2.0 * share[0, 0], N_SERVICES, len(RESOURCES), len(days), 48),
        placement_curves=lambda days, share: (
            constant(3.0 * share[0, 0], N_SERVICES, len(RESOURCES), 2, len(days), 48),
            np.array([0.75, 0.25]),
        ),
        replicas=lambda days: constant(7.0, N_SERVICES, len(days), 48),
        base=lambda days: constant(0.5, N_NODES, len(RESOURCES), len(days), 48),
        correction=constant(1.0, N_SERVICES, len(RESOURCES)),
        load_share=lambda current: constant(share, N_SERVICES, len(RESOURCES)),
        autoscaled=np.array([0, 0, 0, 0, 1.0]),
        own_std=constant(0.1, N_SERVICES, len(RESOURCES), 48),
        shared_std=constant(0.2, N_SERVICES, len(RESOURCES), 48),
        node_base_std=constant(0.3, N_NODES, len(RESOURCES), 48),
        cluster_std=constant(0.05, len(RESOURCES)),
        node_bound_z=constant(2.5, N_NODES, len(RESOURCES)),
        per_pod_cost=constant(0.0, len(RESOURCES), 4, 48),
        services=small_cluster()[0].services,
        run_seconds=constant(np.nan, N_SERVICES, 2),
        run_usage=constant(np.nan, N_SERVICES, len(RESOURCES)),
    )
    return cast(PeakModel, model)


def test_last_week_is_the_seven_days_before_with_gaps_filled_and_unknown_services_by_request() -> None:
    history, _ = small_cluster()
    window = replay_window(history)
    at = window.history_slot
    expected = flat(history.usage_per_pod)[:, CPU, at - 336 : at]
    np.testing.assert_allclose(last_week(history, window).mean[:, CPU], expected)
    history, _ = small_cluster()
    window = replay_window(history)
    usage = history.usage_per_pod
    usage[0, CPU, window.first_day - 2, 20] = np.nan
    usage[1] = np.nan
    mean = last_week(history, window).mean
    assert np.isfinite(mean).all()
    np.testing.assert_allclose(mean[1, CPU], history.requests[1, 0])
    np.testing.assert_allclose(mean[1, MEMORY], history.requests[1, 1])
    assert (mean[0, CPU] > 0).all()


def test_services_without_usage_before_the_placement_count_with_their_requests() -> None:
    history, _ = small_cluster()
    window = replay_window(history)
    model: Any = flat_model()
    model.usage_day_type = np.ones((N_SERVICES, len(RESOURCES), 4, 48))
    model.usage_day_type[1:3] = np.nan
    model.cost = lambda days: np.zeros((len(RESOURCES), len(days), 48))
    model.usage_from_requests = lambda cores, memory, days: np.full((len(RESOURCES), len(days), 48), 0.4 * cores)
    known = from_model(model, window, np.ones(N_SERVICES))
    requests = np.array([[9.0, 9.0], [2.0, 1e9], [0.0, 0.0], [9.0, 9.0], [9.0, 9.0]])
    forecast = at_requests(known, model, window, requests)
    assert (forecast.mean[1] == 0.8).all() and (forecast.curves[1] == 0.8).all()
    unchanged = [0, 2, 3, 4]  # the model knows the others, and nothing is known of the third
    np.testing.assert_array_equal(forecast.mean[unchanged], known.mean[unchanged])
    np.testing.assert_array_equal(forecast.curves[unchanged], known.curves[unchanged])


def test_a_model_becomes_curves_over_the_window_with_wider_bounds_as_it_ages() -> None:
    history, _ = small_cluster()
    window = replay_window(history)
    current = np.array([4.0, 4.0, 4.0, 4.0, 3.0])
    forecast = from_model(flat_model(), window, current)
    assert forecast.mean.shape == (N_SERVICES, len(RESOURCES), 336)
    assert forecast.curves.shape == (N_SERVICES, len(RESOURCES), 2, 336)
    usage, weights = forecast.points()
    assert usage.shape == (N_SERVICES, len(RESOURCES), 672)
    assert weights.sum() == pytest.approx(336)
    # A fixed service has the pods it has; an autoscaled one gets those it is expected to get.
    assert forecast.replicas[0, 0] == 4
    assert forecast.replicas[4, 0] == 7
    history, _ = small_cluster()
    window = replay_window(history)
    fresh, old = (from_model(flat_model(), window, np.ones(N_SERVICES), widen=widen) for widen in (1.0, 2.0))
    assert fresh.bound is not None
    assert old.bound is not None
    np.testing.assert_allclose(old.bound.own_variance, 4 * fresh.bound.own_variance)
    np.testing.assert_allclose(old.mean, fresh.mean)


def test_the_true_future_is_a_mean_and_a_part_of_a_forecast_its_half_hours() -> None:
    history, pods = small_cluster()
    window = replay_window(history)
    curves = true_future(record(history, pods, window, hot=HOT_SHARE), np.zeros(N_SERVICES, dtype=bool))
    expected = window.cut(history.usage_per_pod[:, :, window.first_day : window.first_day + len(window.days)])
    np.testing.assert_allclose(curves.mean[:, CPU], expected[:, CPU], rtol=1e-5)
    history, _ = small_cluster()
    window = replay_window(history)
    whole = simple_forecast(history.before(window.first_day), window, np.zeros(len(history.services)))
    part = whole.between(10, 40)
    assert part.bound is not None and whole.bound is not None
    for of, full, names in (
        (part, whole, ("mean", "curves", "replicas", "base")),
        (part.bound, whole.bound, ("own_variance", "shared_variance", "base_variance")),
    ):
        for name in names:
            np.testing.assert_array_equal(getattr(of, name), getattr(full, name)[..., 10:40])
    np.testing.assert_array_equal(part.curve_weights, whole.curve_weights)
