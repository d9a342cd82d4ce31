"""The measures over arrays, on made-up series with and without what they look for."""

from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats
from tests.synthetic import HOURS, evening_shape
from trainer.audit.day_shapes import lag
from trainer.audit.implausible_values import lone_dips, lone_spikes
from trainer.audit.repetition import relative_error
from trainer.audit.unknowns import ceiling

N_DAYS = 28


def noisy_evenings(noise: float, *, seed: int = 0, n_days: int = N_DAYS) -> Floats:
    """An evening peak each day: (n_days, 48)."""
    rng = np.random.default_rng(seed)
    return evening_shape() * np.exp(noise * rng.normal(size=(n_days, 48)))


def test_independent_noise_has_the_square_root_of_two() -> None:
    noise = np.random.default_rng(0).normal(10, 1, size=(1, 200, 48))
    relative, roughness = relative_error(noise)
    assert relative[0] == pytest.approx(np.sqrt(2), abs=0.02)
    assert roughness[0] == pytest.approx(0.1 * np.sqrt(2 / np.pi), abs=0.005)  # mean |x| of a normal x


def test_the_relative_error_agrees_with_a_plain_loop_over_gaps() -> None:
    values = noisy_evenings(0.5, seed=3)
    values[9:11] = np.nan
    values[20, 5:30] = np.nan
    errors: list[tuple[float, float, float]] = []
    for day in range(7, N_DAYS):
        level = np.nanmean(values[day - 7 : day])
        for slot in range(48):
            now, others = values[day, slot], (values[day - 1, slot], values[day - 7, slot], level)
            if np.isfinite([now, *others]).all():
                errors.append((abs(now - others[0]), abs(now - others[1]), abs(now - others[2])))
    yesterday, week, level = np.mean(errors, axis=0)
    assert relative_error(values[None])[0][0] == pytest.approx(min(yesterday, week) / level)


@pytest.mark.parametrize("total", [np.ones((1, 13, 48)), np.full((1, 28, 48), np.nan), np.zeros((1, 28, 48))])
def test_what_cannot_be_compared_has_no_relative_error(total: Floats) -> None:
    assert np.isnan(relative_error(total)[0]).all()


@pytest.mark.parametrize(
    "usage",
    [
        noisy_evenings(0.1),
        noisy_evenings(0.0),
        np.tile(1 + 0.5 * np.cos(HOURS * np.pi / 12), (N_DAYS, 1)),  # a smooth day, again and again
        np.random.default_rng(0).normal(1, 0.01, size=(N_DAYS, 48)),  # even load: always near its maximum
        np.random.default_rng(0).uniform(0, 1, size=(N_DAYS, 48)),
        np.full((N_DAYS, 48), 0.3),
        np.minimum(noisy_evenings(0.1, n_days=6), 0.6),  # less than a week
    ],
    ids=["evenings", "equal evenings", "smooth", "even", "uniform", "constant", "six days"],
)
def test_usage_without_a_limit_has_no_ceiling(usage: Floats) -> None:
    assert np.isnan(ceiling(usage.reshape(1, -1))[0][0])


def test_a_single_half_hour_far_above_all_others_is_a_spike() -> None:
    usage = noisy_evenings(0.1).reshape(1, -1)
    broken = usage.copy()
    broken[0, 700] = 20 * usage.max()
    nightly = usage.copy()
    nightly[0, 4::48] = 20 * usage.max()  # a backup
    assert [int(lone_spikes(one)[0]) for one in (usage, broken, nightly)] == [0, 1, 0]


def test_a_half_hour_at_nothing_between_ordinary_ones_is_a_dip() -> None:
    usage = noisy_evenings(0.1).reshape(1, -1) + 0.2
    broken = usage.copy()
    broken[0, [100, 700]] = 0
    away = usage.copy()
    away[0, 100:104] = 0  # two hours are no single sample
    idle = np.where(np.arange(usage.shape[1]) % 2, usage, 0)  # it is idle half of the time
    assert [int(lone_dips(one)[0]) for one in (usage, broken, away, idle)] == [0, 2, 0, 0]


@pytest.mark.parametrize("slots", [-4, 0, 3])
def test_the_lag_of_a_moved_shape_is_how_far_it_was_moved(slots: int) -> None:
    found, fit, _ = lag(evening_shape(), np.roll(evening_shape(), slots))
    assert found == slots
    assert fit == pytest.approx(1)
