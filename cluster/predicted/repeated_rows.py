"""Adding the same to many rows of a table, of which some are named more than once."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats, Ints

_ROWS_AT_ONCE = 128
"""What is copied in between stays in the processor's cache."""


def add_to_rows(table: Floats, rows: Ints, amount: AnyFloats | float) -> None:
    """`table[row] += amount` for each of `rows` in order, with the same rounding as in a loop.

    table  : (n_rows, ...), changed in place
    rows   : (n,) repeats allowed
    amount : (...,)
    """
    once, times = np.unique(rows, return_counts=True)
    for done in range(int(times.max(initial=0))):
        again = once[times > done]
        for start in range(0, len(again), _ROWS_AT_ONCE):
            table[again[start : start + _ROWS_AT_ONCE]] += amount
