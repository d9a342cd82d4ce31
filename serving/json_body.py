"""Bodies of answers as JSON: msgspec structures that may hold NumPy arrays."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

_DIGITS: Final = 7
"""Significant digits of numbers in arrays: what is more is noise and traffic."""


def json_body(value: object) -> bytes:
    """A msgspec structure as JSON; NaN and infinity become null. Raises TypeError for what JSON cannot hold."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} has no JSON form: turn it into a struct, a list or a number")
    return (rounded(value) if value.dtype.kind == "f" else value).tolist()


def rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers to seven significant digits, as float64; NaN and infinity stay."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        magnitude = np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(magnitude), _DIGITS - 1 - magnitude, 0.0)
        result = np.round(values * scale) / scale
    return np.where(np.isfinite(result), result, values)
