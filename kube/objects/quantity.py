"""Kubernetes quantities ("100m", "1.5Gi", "2e3") -> float in base units: cores, bytes, counts.

Source: apimachinery v0.36, pkg/api/resource/quantity.go and suffix.go.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from base.errors import InputError

# Each digit can match in one way only: text from any client must not take quadratic time.
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}

_SMALLEST = 1e-9  # "if you want some resources, you should get some": quantity.go rounds up to 1n
_LARGEST_BINARY = 2.0**63  # quantity.go caps binary quantities there, others not
_LARGEST = 1e30  # far beyond any machine; what is larger would only make sums infinite


def parse_quantity(text: str | float) -> float:
    """A quantity as a float; JSON and YAML may also have it as a bare number.

    A value that is not zero is at least 1n. Raises InputError on anything that is not a quantity, and beyond 1e30.
    """
    if isinstance(text, str):
        return _parse(text) if len(text) < 64 else _parse.__wrapped__(text)
    if isinstance(text, bool) or not isinstance(text, (int, float)):
        raise InputError(f"quantity {text!r} is neither text nor a number: write it as in 500m or 1.5Gi")
    return _checked(float(text) if abs(text) <= _LARGEST else math.inf, "given as a number")


@lru_cache(maxsize=8192)  # a cluster has few different quantities, and a hundred thousand pods that carry them
def _parse(text: str) -> float:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InputError(
            f"quantity {text[:64]!r} cannot be read: write a number with one of the suffixes n, u, m, k, M, G, T, P, "
            "E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, as in 500m, 1.5Gi or 2e3"
        )
    number, suffix, exponent = match.groups()
    if suffix in _BINARY:
        value = float(number) * _BINARY[suffix]
        return _checked(math.copysign(min(abs(value), _LARGEST_BINARY), value), text)
    # As an exponent rather than by multiplying, so that 100m is the same float as 0.1.
    return _checked(float(f"{number}e{_DECIMAL[suffix] if suffix else exponent or 0}"), text)


def _checked(value: float, text: str) -> float:
    if not abs(value) <= _LARGEST:
        raise InputError(f"quantity {text[:64]!r} is beyond 1e30 or not a number: no machine has so much")
    if value and abs(value) < _SMALLEST:
        return math.copysign(_SMALLEST, value)
    return value
