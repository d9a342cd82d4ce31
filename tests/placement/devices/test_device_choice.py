from __future__ import annotations

import pytest

from placement.devices.node_devices import best_fit, least_full


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


def test_where_nothing_fits_the_most_is_left() -> None:
    assert least_full([0, 300, -1, 300, 200], 2) == (1, 3)
    assert least_full([0, 100], 3) == (0, 1)
