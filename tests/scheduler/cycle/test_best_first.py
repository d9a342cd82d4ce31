from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycle.best_first import BestFirst


@given(
    worth=st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]) | st.floats(-3, 3), max_size=700),
    wanted=st.lists(st.integers(0, 800), max_size=4),
    every=st.integers(1, 3),
)
def test_what_is_sorted_is_the_beginning_of_a_stable_sort(worth: list[float], wanted: list[int], every: int) -> None:
    values, positions = np.array(worth, dtype=np.float64), np.arange(0, len(worth), every)
    whole = positions[np.argsort(-values[positions], kind="stable")]
    order = BestFirst(values, positions)
    for n in wanted:
        first = order.first(n)
        assert len(first) >= min(n, len(positions))
        np.testing.assert_array_equal(first, whole[: len(first)])


def test_only_the_best_are_sorted() -> None:
    order = BestFirst(np.arange(5_000.0), np.arange(5_000))
    assert order.first(1)[0] == 4_999
    assert len(order.first(1)) < 500
