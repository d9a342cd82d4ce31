"""Numbers of settings that have to lie between limits."""

from __future__ import annotations

import math

from forecast.errors import InputError

__all__ = ["within"]


def within(name: str, value: float, least: float, most: float) -> None:
    """Raises InputError where it does not, or is no number."""
    if not (math.isfinite(value) and least <= value <= most):
        raise InputError(f"{name} is {value}: it must be from {least:g} to {most:g}")
