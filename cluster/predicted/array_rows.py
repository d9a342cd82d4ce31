"""Rows of arrays: tables that grow by rows, and adding the same to many rows of which some are named twice."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from base.arrays import AnyFloats, Floats, Ints

_Scalar = TypeVar("_Scalar", bound=np.generic)

_ROWS_AT_ONCE = 128
"""What is copied in between stays in the processor's cache."""


def grown(array: NDArray[_Scalar], n_rows: int, fill: float = 0.0) -> NDArray[_Scalar]:
    """The array if it has `n_rows` rows, else one half as large again that begins with it."""
    if n_rows <= len(array):
        return array
    larger = np.full((n_rows + n_rows // 2, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


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
