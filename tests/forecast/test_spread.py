"""The parts of the forecast error, recovered from residuals built of known parts."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.spread import smooth_slots, spread_of

N_SERVICES, N_DAYS, REPLICAS = 40, 21, 8.0


def residuals(own: float, shared: float, cluster: float, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    shape = (N_SERVICES, 1, N_DAYS, 48)
    forecast = np.full(shape, 10.0)
    common = cluster * rng.normal(size=(1, 1, N_DAYS, 48)) * forecast
    error = common + shared * rng.normal(size=shape) + own / np.sqrt(REPLICAS) * rng.normal(size=shape)
    replicas = np.full((N_SERVICES, N_DAYS, 48), REPLICAS)
    return spread_of(error, forecast, replicas, np.full(shape, own**2))


def test_own_and_shared_errors_are_told_apart() -> None:
    spread = residuals(own=2.0, shared=1.0, cluster=0.0)
    assert spread.own_std.mean() == pytest.approx(2.0)
    assert spread.shared_std.mean() == pytest.approx(1.0, rel=0.05)
    assert spread.cluster_std[0] < 0.02


def test_what_the_cluster_does_wrong_together_is_found() -> None:
    spread = residuals(own=0.5, shared=0.2, cluster=0.1)
    assert spread.cluster_std[0] == pytest.approx(0.1, rel=0.25)


def test_no_residuals_means_no_spread_not_nan() -> None:
    shape = (2, 1, 3, 48)
    nothing = np.full(shape, np.nan)
    spread = spread_of(nothing, nothing, np.full((2, 3, 48), np.nan), nothing)
    assert (spread.own_std == 0).all() and (spread.shared_std == 0).all() and (spread.cluster_std == 0).all()


def test_smoothing_keeps_the_mean_and_wraps_round_midnight() -> None:
    spike = np.zeros(48)
    spike[0] = 9.0
    smooth = smooth_slots(spike)
    assert smooth.sum() == pytest.approx(9.0) and smooth[47] == pytest.approx(2.0) and smooth[24] == 0


@pytest.mark.parametrize(("load_that_came", "most"), [(12.0, 0.2), (100.0, 0.0)])
def test_an_error_that_has_no_proportion_to_the_load_multiplies_nothing(load_that_came: float, most: float) -> None:
    shape = (1, 1, 3, 48)
    forecast = np.full(shape, 10.0)
    errors = np.zeros(shape)
    errors[:, :, :, 4:12] = load_that_came - 10.0
    replicas, nothing = np.ones((1, 3, 48)), np.full(shape, np.nan)
    two = np.concatenate([errors, errors]), np.concatenate([forecast, forecast]), np.concatenate([replicas, replicas])
    spread = spread_of(*two, np.concatenate([nothing, nothing]))
    assert spread.cluster_std[0] <= most
