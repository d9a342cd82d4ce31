from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.capacity.fewest_nodes import NEIGHBOURS, fewest, step_at

MOST = 300


class Asked:
    """A yes or no for each number, and how often it was asked for."""

    def __init__(self, enough: set[int]) -> None:
        self.enough, self.asked = enough, list[int]()

    def __call__(self, n_nodes: int) -> bool:
        self.asked.append(n_nodes)
        return n_nodes in self.enough


@given(st.integers(1, MOST), st.integers(1, MOST))
def test_where_more_is_always_better_it_finds_the_first_number_from_any_guess(first: int, guess: int) -> None:
    holds = Asked(set(range(first, MOST + 1)))
    assert fewest(holds, guess, most=MOST) == first
    assert len(holds.asked) == len(set(holds.asked)) <= 22


@given(st.sets(st.integers(1, 60)), st.integers(1, 60))
def test_whatever_holds_the_answer_and_the_next_two_hold_and_some_smaller_number_does_not(
    enough: set[int], guess: int
) -> None:
    found = fewest(Asked(enough), guess, most=60)
    if found is not None:
        assert all(min(found + more, 60) in enough for more in range(NEIGHBOURS + 1))
        assert found == 1 or not set(range(1, found)) <= enough


@pytest.mark.parametrize("enough", [set(), {20}, {298, 299}])
def test_nothing_that_holds_is_no_number(enough: set[int]) -> None:
    assert fewest(Asked(enough), 40, most=MOST) is None


def test_large_clusters_are_searched_to_half_a_per_cent() -> None:
    assert [step_at(n) for n in (60, 399, 400, 2000)] == [1, 1, 2, 10]
    holds = Asked(set(range(2005, 9001)))
    found = fewest(holds, 1900, most=9000)
    assert found is not None and 2005 <= found < 2005 + step_at(found)
    assert len(holds.asked) < 12
