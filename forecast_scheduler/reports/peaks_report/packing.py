"""Curves in few bytes: two a value, in base64, which is a third of what the digits would take."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from forecast.arrays import AnyFloats

MISSING = 0xFFFF
"""Stands for NaN; the highest value is one less."""


def packed(curves: AnyFloats) -> dict[str, Any] | None:
    """{"step": unit of one count, "counts": little-endian 16 bit in base64}; None where nothing is known.

    curves : any shape, base units; below 0 counts as 0. Rounded to a 65,534th of the highest value.
    """
    known = np.isfinite(curves)
    if not known.any():
        return None
    highest = float(np.asarray(curves, dtype=np.float64)[known].max())
    step = max(highest, 1e-12) / (MISSING - 1)
    counts = np.where(known, np.rint(np.maximum(np.nan_to_num(curves), 0.0) / step), MISSING)
    return {"step": step, "counts": base64.b64encode(counts.astype("<u2").tobytes()).decode("ascii")}
