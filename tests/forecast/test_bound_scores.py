"""Offsets are the quantile of what would have held: both ways, for each service, and never far by chance."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.bound_scores import FURTHEST, NIGHTS, offsets_of, weighted_quantile


def nights(rng: np.random.Generator, n_units: int, bound: float, level: list[float]) -> np.ndarray:
    """Scores of normal peaks of these levels against a bound: (n_units, 1, 28), older nights unknown."""
    scores = np.full((n_units, 1, NIGHTS), np.nan)
    for i, mean in enumerate(level):
        scores[:, 0, NIGHTS - len(level) + i] = rng.normal(mean - bound, 0.6, n_units)
    return scores


def test_bounds_that_nothing_is_known_of_stay() -> None:
    shared, own = offsets_of(np.full((3, 2, NIGHTS), np.nan))
    assert not shared.any() and not own.any()
    assert offsets_of(np.empty((0, 2, NIGHTS)))[1].shape == (0, 2)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_that_hold_as_they_should_move_little(seed: int) -> None:
    scores = nights(np.random.default_rng(seed), 150, 1.645 * 0.6, [0.0] * 20)
    shared, own = offsets_of(scores)
    assert abs(shared[0]) < 0.15
    assert np.abs(own[:, 0] - shared[0]).mean() < 0.15


def test_a_rise_is_followed_the_night_after_and_its_end_within_three() -> None:
    """Drift by two of the bound's units: up it has to go at once, and down as soon as two nights agree."""
    rng, bound = np.random.default_rng(0), 1.645 * 0.6
    before = [0.0] * 10
    up = offsets_of(nights(rng, 150, bound, [*before, 2.0]))[0][0]
    assert 1.2 < up < 2.5
    high = offsets_of(nights(rng, 150, bound, [*before, *[2.0] * 6]))[0][0]
    assert 1.7 < high < 2.3
    after_one = offsets_of(nights(rng, 150, bound, [*before, *[2.0] * 6, 0.0]))[0][0]
    after_two = offsets_of(nights(rng, 150, bound, [*before, *[2.0] * 6, 0.0, 0.0]))[0][0]
    assert after_one > 1.5
    assert after_two < 0.5


def test_bounds_with_much_room_come_down_by_most_of_it() -> None:
    shared = offsets_of(nights(np.random.default_rng(0), 150, 4.0, [0.0] * 10))[0][0]
    assert -0.8 * (4 - 1.0) < shared < -0.5 * (4 - 1.0)


def test_a_few_scores_move_a_bound_less_than_many() -> None:
    few, many = (offsets_of(nights(np.random.default_rng(0), n_units, 0.0, [2.0] * 3))[0][0] for n_units in (2, 200))
    assert 0 < few < many


def test_a_service_that_is_always_missed_moves_more_than_the_others_and_a_new_one_as_they_do() -> None:
    scores = nights(np.random.default_rng(0), 150, 1.0, [0.0] * NIGHTS)
    scores[0] += 3.0
    scores[1] = np.nan
    shared, own = offsets_of(scores)
    assert own[0, 0] > shared[0] + 0.5
    assert own[1, 0] == shared[0]
    assert np.abs(own[2:, 0] - shared[0]).max() < 0.6


def test_one_wild_service_moves_no_other() -> None:
    scores = nights(np.random.default_rng(0), 150, 1.0, [0.0] * NIGHTS)
    wild = scores.copy()
    wild[0] = FURTHEST
    calm, moved = offsets_of(scores)[0][0], offsets_of(wild)[0][0]
    assert abs(moved - calm) < 0.1


def test_weighted_quantiles_are_those_of_repeated_values() -> None:
    rng = np.random.default_rng(0)
    values, times = rng.normal(size=(1, 40)), rng.integers(1, 5, 40)
    weights = times.astype(np.float64)
    repeated = np.sort(np.repeat(values[0], times))
    expected = repeated[int(np.ceil(0.95 * len(repeated))) - 1]
    assert weighted_quantile(values, weights)[0] == expected
    unknown = np.where(np.arange(40) % 7 == 0, np.nan, values[0])
    known = np.isfinite(unknown)
    assert weighted_quantile(unknown[None], weights)[0] == weighted_quantile(unknown[None, known], weights[known])[0]
