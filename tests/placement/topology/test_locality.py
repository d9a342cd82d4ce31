"""Cards near each other: examples, and against all ways to choose."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.topology.near_cards import choose_local, crossings, distance
from placement.topology.node_zones import Groups

HALVES: Groups = ((0, 1, 2, 3), (4, 5, 6, 7))
PAIRS: Groups = ((0, 1), (2, 3), (4, 5), (6, 7))
ACROSS: Groups = ((0, 4), (1, 5), (2, 6), (3, 7))
ALL: Groups = ((0, 1, 2, 3, 4, 5, 6, 7),)


@pytest.mark.parametrize(
    ("free", "levels", "count", "expected"),
    [
        ("01234567", (), 3, "012"),
        ("01234567", (HALVES,), 4, "0123"),
        ("0123567", (HALVES,), 3, "567"),  # 012 would break a whole group
        ("012567", (HALVES,), 4, "0125"),
        ("01234567", (ACROSS, HALVES), 4, "0145"),  # pairs first, though they are in both halves
        ("0134567", (PAIRS, HALVES), 4, "4567"),
        ("0134567", (PAIRS, HALVES), 1, "3"),  # of a pair that is broken already
        ("01234567", (ALL, HALVES), 4, "0123"),
        ("01345", (((0, 1), (2, 3, 4, 5)),), 1, "3"),  # fewer would be left beside 0, of a group that is whole
        ("89", (HALVES,), 2, "89"),  # in no group
        ("0", (HALVES,), 2, None),
        ("", (HALVES,), 1, None),
    ],
)
def test_which_cards(free: str, levels: tuple[Groups, ...], count: int, expected: str | None) -> None:
    chosen = choose_local(list(map(int, free)), levels, count)
    assert chosen == (None if expected is None else tuple(map(int, expected)))


def n_groups(cards: tuple[int, ...], groups: Groups) -> int:
    return sum(not set(group).isdisjoint(cards) for group in groups)


@settings(max_examples=50)
@given(
    st.sets(st.integers(0, 7), min_size=1),
    st.sampled_from([(HALVES,), (PAIRS,), (PAIRS, HALVES), (ACROSS, HALVES), (ALL, HALVES), (ALL,)]),
    st.integers(1, 8),
)
def test_as_few_groups_as_any_choice_has(free: set[int], levels: tuple[Groups, ...], count: int) -> None:
    chosen = choose_local(free, levels, count)
    if len(free) < count:
        assert chosen is None
        return
    assert chosen is not None and len(set(chosen)) == count and free.issuperset(chosen)
    best = min(tuple(n_groups(way, groups) for groups in levels) for way in combinations(sorted(free), count))
    assert tuple(n_groups(chosen, groups) for groups in levels) == best


@settings(max_examples=50)
@given(st.sets(st.integers(0, 9), min_size=1), st.sampled_from([HALVES, PAIRS, ACROSS]), st.integers(1, 8))
def test_crossings_are_those_of_the_choice(free: set[int], groups: Groups, count: int) -> None:
    has = np.array([[card in free for card in range(10)]])
    chosen = choose_local(free, (groups,), count)
    everyone = (*groups, (8,), (9,))
    expected = len(everyone) if chosen is None else n_groups(chosen, everyone) - 1
    assert crossings(has, groups, count).tolist() == [expected]


def test_distance_is_the_mean_and_unknown_is_far() -> None:
    costs = {0: {0: 10, 1: 20}, 1: {0: 20, 1: 10}}
    assert distance([0], costs) == 10
    assert distance([0, 1], costs) == 15
    assert distance([0, 2], costs) == (10 + 255 * 3) / 4
    assert distance([], costs) == 255
