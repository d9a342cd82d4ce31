"""Demand of inference from what is expected of services, what they have now, and margins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import ServiceGpus, demand_ahead
from testing.constants import with_constants
from tests.profiles.gpu.tide.tide_made_up import NOON, PLAIN, SLOT

STARTS = NOON + SLOT * np.arange(9, dtype=np.float64)
CAPACITY = np.array([100.0])


def use(key: str, held: float, expected: Sequence[float] | None, waiting: float = 0.0) -> ServiceGpus:
    one = np.ones(1)
    curve = None if expected is None else np.array(expected, dtype=np.float64)
    return ServiceGpus(key, held * one, waiting * one, one, curve)


def need(*uses: ServiceGpus, options: TideOptions = PLAIN, now: float = NOON) -> list[float]:
    found: list[float] = demand_ahead(uses, CAPACITY, STARTS, now, options).need[0].tolist()
    return found


def test_what_rises_is_expected_half_an_hour_early_and_what_falls_half_an_hour_late() -> None:
    assert need(use("a", 4, [4, 4, 8, 8, 4, 4, 4, 4])) == [4, 8, 8, 8, 8, 4, 4, 4]


def test_errors_of_services_add_as_squares_and_the_common_one_linearly() -> None:
    flat = [16.0] * 8
    both = [use("a", 16, flat), use("b", 16, flat)]
    assert need(*both, options=with_constants(TideOptions(), margin=0.25, spread=0.0))[3] == 40
    assert need(*both, options=with_constants(TideOptions(), margin=0.0, spread=0.25))[3] == np.ceil(
        32 + 4 * np.sqrt(2)
    )
    assert need(*both, options=with_constants(TideOptions(), margin=0.0, spread=0.0, reserve_gpus=3))[3] == 35


def test_half_hours_that_a_stretch_touches() -> None:
    ahead = demand_ahead([], CAPACITY, STARTS, NOON, PLAIN)
    assert np.flatnonzero(ahead.slots(NOON, NOON)).tolist() == [0]
    assert np.flatnonzero(ahead.slots(NOON + 1, NOON + SLOT)).tolist() == [0, 1]
    assert np.flatnonzero(ahead.slots(NOON + 20 * SLOT, NOON + 30 * SLOT)).tolist() == [7]
    assert np.flatnonzero(ahead.slots(NOON - 9 * SLOT, NOON - 8 * SLOT)).tolist() == [0]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=4),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
)
def test_need_is_never_less_than_expected_nor_than_what_is_held_and_waited_for(
    services: list[tuple[int, int, int]], margin: float, spread: float
) -> None:
    uses = [use(str(n), held, [float(level)] * 8, waiting) for n, (held, level, waiting) in enumerate(services)]
    ahead = demand_ahead(uses, CAPACITY, STARTS, NOON, with_constants(TideOptions(), margin=margin, spread=spread))
    assert (ahead.need >= ahead.expected - 1e-6).all()
    assert ahead.need[0, 0] >= sum(held + waiting for held, _, waiting in services)
    assert ahead.expected[0] == pytest.approx(ahead.by_service.sum(axis=0)[0])
