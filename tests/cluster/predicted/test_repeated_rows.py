"""The quick way of adding to rows rounds as the loop does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cluster.predicted import array_rows
from cluster.predicted.array_rows import add_to_rows

FLOATS = st.floats(-1e6, 1e6, width=32)


@given(
    arrays(np.float64, (4, 3), elements=st.floats(-1e9, 1e9)),
    st.lists(st.integers(0, 3), max_size=12),
    arrays(np.float32, 3, elements=FLOATS),
    st.sampled_from([1, 2, 128]),
)
def test_it_is_the_loop(table: np.ndarray, rows: list[int], amount: np.ndarray, at_once: int) -> None:
    expected = table.copy()
    for row in rows:
        expected[row] += amount
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_rows, "_ROWS_AT_ONCE", at_once)
        add_to_rows(table, np.array(rows, dtype=np.int64), amount)
    assert table.tobytes() == expected.tobytes()
