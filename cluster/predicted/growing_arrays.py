"""Arrays that grow by rows."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def grown(array: NDArray[_Scalar], n_rows: int, fill: float = 0.0) -> NDArray[_Scalar]:
    """The array if it has `n_rows` rows, else one half as large again that begins with it."""
    if n_rows <= len(array):
        return array
    larger = np.full((n_rows + n_rows // 2, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger
