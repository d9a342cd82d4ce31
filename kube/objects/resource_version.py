"""resourceVersions of one resource: decimal numbers that grow (KEP-5504)."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 39
"""Digits: those of 128 bits. Python refuses to read numbers of thousands of digits."""


def version_number(version: str | None) -> int | None:
    """Return the number; None = it is none."""
    is_one = version and len(version) <= _LONGEST and version.isascii() and version.isdigit()
    return int(version) if version and is_one else None


def is_older(one: str, other: str) -> bool:
    """Return whether the first of two versions is the older; what is no number says nothing."""
    numbers = version_number(one), version_number(other)
    return numbers[0] is not None and numbers[1] is not None and numbers[0] < numbers[1]
