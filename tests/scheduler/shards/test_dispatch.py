"""Which replica a unit goes to: by weight, alike in every process, and with few moves when a replica dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.shards.assignment import Dispatcher, dispatcher

UNITS = [f"owner:team-{i % 50}/{i:x}" for i in range(4000)]
HOLDERS = {number: f"replica-{number % 4}" for number in range(16)}

ELSEWHERE = """
from scheduler.shards.assignment import dispatcher
one = dispatcher({number: f"replica-{number % 4}" for number in range(16)}, {3: 2.5, 7: 0.3})
print([one.in_order(f"unit-{i}") for i in range(300)])
"""


def firsts(one: Dispatcher) -> dict[str, str]:
    return {unit: one.in_order(unit)[0] for unit in UNITS}


@pytest.mark.parametrize("weight", [0.25, 1.0, 2.0, 4.0])
def test_a_shard_gets_units_by_its_room(weight: float) -> None:
    """4,000 units: five standard deviations of a binomial count around the share."""
    counts = Counter(firsts(dispatcher({0: "a", 1: "b", 2: "c"}, {0: weight})).values())
    share = weight / (weight + 2)
    bound = 5 * (len(UNITS) * share * (1 - share)) ** 0.5
    assert abs(counts["a"] - len(UNITS) * share) < bound
    assert abs(counts["b"] - counts["c"]) < 5 * (len(UNITS) * (1 - share)) ** 0.5


def test_a_holder_that_dies_moves_only_its_units_and_to_the_next_in_their_order() -> None:
    before = dispatcher(HOLDERS, {})
    after = dispatcher({number: one for number, one in HOLDERS.items() if one != "replica-2"}, {})
    n_moved = 0
    for unit in UNITS:
        without = tuple(one for one in before.in_order(unit) if one != "replica-2")
        assert after.in_order(unit) == without
        n_moved += before.in_order(unit)[0] == "replica-2"
    assert 0 < n_moved < len(UNITS) / 2


def test_a_shard_that_changes_hands_moves_no_unit_of_another_replica() -> None:
    before, after = firsts(dispatcher(HOLDERS, {})), firsts(dispatcher(HOLDERS | {5: "replica-3"}, {}))
    moved = {(before[unit], after[unit]) for unit in UNITS if before[unit] != after[unit]}
    assert moved == {("replica-1", "replica-3")}


def test_another_process_says_the_same() -> None:
    """str.__hash__ differs from process to process."""
    said = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    ours = dispatcher(HOLDERS, {3: 2.5, 7: 0.3})
    assert said == [f"{[ours.in_order(f'unit-{i}') for i in range(300)]}\n"] * 2


@given(
    holders=st.dictionaries(st.integers(0, 255), st.sampled_from("abcde"), max_size=30),
    rooms=st.dictionaries(st.integers(0, 255), st.floats(0.0, 1e9), max_size=30),
    unit=st.text(max_size=80),
)
def test_the_order_has_every_holder_once(holders: dict[int, str], rooms: dict[int, float], unit: str) -> None:
    order = dispatcher(holders, rooms).in_order(unit)
    assert sorted(order) == sorted(set(holders.values()))
    assert dispatcher(dict(reversed(holders.items())), rooms).in_order(unit) == order
