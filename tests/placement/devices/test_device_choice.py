from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.devices.device_choice import best_fit, least_full


@pytest.mark.parametrize(
    ("free", "count", "milli", "expected"),
    [
        pytest.param([1000, 1000, 1000], 2, 1000, (0, 1), id="the first that are free"),
        pytest.param([999, 1000, 0, 1000], 2, 1000, (1, 3), id="not those of which others have a share"),
        pytest.param([1000, 0], 2, 1000, None, id="too few"),
        pytest.param([1000, 600, 500, 400], 1, 500, (2,), id="the tightest"),
        pytest.param([700, 600, 600], 1, 500, (1,), id="of equal ones the first"),
        pytest.param([400, -1], 1, 500, None, id="too little left"),
        pytest.param([], 1, 1, None, id="none at all"),
    ],
)
def test_best_fit(free: list[int], count: int, milli: int, expected: tuple[int, ...] | None) -> None:
    assert best_fit(free, count, milli) == expected


@given(free=st.lists(st.integers(-1, 1000), max_size=6), count=st.integers(1, 3), milli=st.integers(1, 1000))
def test_no_choice_leaves_less_over(free: list[int], count: int, milli: int) -> None:
    fitting = [device for device, left in enumerate(free) if left >= milli]
    chosen = best_fit(free, count, milli)
    if chosen is None:
        assert len(fitting) < count
        return
    assert len(set(chosen)) == count and set(chosen) <= set(fitting)
    least = min(sum(free[device] for device in some) for some in combinations(fitting, count))
    assert sum(free[device] for device in chosen) == least


def test_where_nothing_fits_the_most_is_left() -> None:
    assert least_full([0, 300, -1, 300, 200], 2) == (1, 3)
    assert least_full([0, 100], 3) == (0, 1)
