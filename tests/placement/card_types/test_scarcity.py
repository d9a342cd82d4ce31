from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from base.arrays import Bools, Floats
from placement.card_types.card_scarcity import classes, exclusive_demand, pressures, rare, scarcities

AMOUNTS = st.integers(0, 100_000).map(float)  # thousandths
SOME, FEW = 4, 3  # demands, models


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("wanted", "unserved", "supply", "free", "expected"),
    [
        pytest.param(50, 0, 100, 50, 0.5, id="half of it is for such pods, and they have it"),
        pytest.param(50, 40, 100, 50, 0.8, id="most of what is free is wanted"),
        pytest.param(50, 50, 100, 20, 1.0, id="more is wanted than is free"),
        pytest.param(10, 10, 100, 0, 1.0, id="nothing is free and somebody waits"),
        pytest.param(10, 0, 100, 0, 0.1, id="nothing is free and nobody waits"),
        pytest.param(10, 10, 0, 0, 0.0, id="there is none"),
    ],
)
def test_how_scarce(wanted: float, unserved: float, supply: float, free: float, expected: float) -> None:
    found = scarcities(floats(wanted), floats(unserved), floats(supply), floats(free))
    assert found.tolist() == pytest.approx([expected])


@given(
    accepts=arrays(bool, (SOME, FEW)),
    amounts=arrays(float, SOME, elements=AMOUNTS),
    supply=arrays(float, FEW, elements=AMOUNTS),
)
def test_exclusive_demand_is_what_one_at_a_time_says(accepts: Bools, amounts: Floats, supply: Floats) -> None:
    slow = [0.0] * FEW
    for fits, amount in zip(accepts, amounts.tolist(), strict=True):
        all_of_it = sum(supply[m] for m in range(FEW) if fits[m])
        for m in range(FEW):
            if fits[m] and all_of_it > 0:
                slow[m] += min(amount, all_of_it) * supply[m] / all_of_it
    np.testing.assert_allclose(exclusive_demand(accepts, amounts, supply), slow, rtol=1e-9, atol=1e-9)


def test_a_class_changes_only_where_scarcity_clearly_leaves_it() -> None:
    def band(scarcity: float, before: int) -> int:
        return int(classes(floats(scarcity), np.array([before]), 0.25)[0])

    assert [band(s, -1) for s in (0.0, 0.24, 0.25, 0.5, 0.99, 1.0)] == [0, 0, 1, 2, 3, 4]
    assert band(0.26, 0) == 0 and band(0.31, 0) == 1
    assert band(0.24, 1) == 1 and band(0.19, 1) == 0
    assert band(0.0, 4) == 0


def test_what_is_rare_stays_so_until_it_is_clearly_less_scarce() -> None:
    scarcity = floats(0.79, 0.80, 0.79, 0.74)
    before = np.array([False, False, True, True])
    assert rare(scarcity, before, 0.8, 0.0).tolist() == [False, True, True, False]


def test_as_scarce_as_the_least_scarce_is_not_rare() -> None:
    scarcity, before = floats(0.9, 0.94, 0.94, 0.96), np.array([True, False, True, False])
    assert rare(scarcity, before, 0.8, 0.9).tolist() == [False, False, True, True]


def test_pressure_counts_what_is_used_and_what_is_waited_for() -> None:
    found = pressures(floats(50, 0, 0), floats(10, 0, 5), floats(100, 10, 0))
    assert found.tolist() == [0.6, 0.0, np.inf]
