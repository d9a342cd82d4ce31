"""Amounts as people write them."""

from __future__ import annotations


def amount(value: float, unit: str) -> str:
    """For instance 1.25 cores, 3.4 GiB, 12 MB/s. unit: that of forecast.resources; bytes are binary, rates decimal."""
    if unit == "cores":
        return f"{float(f'{value:.3g}'):g} cores"
    base, prefixes, suffix = (1024.0, ("", "Ki", "Mi", "Gi", "Ti"), "B") if unit == "bytes" else (1e3, *_RATE)
    for prefix in prefixes:
        if abs(value) < base or prefix == prefixes[-1]:
            return f"{float(f'{value:.3g}'):g} {prefix}{suffix}"
        value /= base
    raise AssertionError("unreachable")


_RATE = (("", "k", "M", "G", "T"), "B/s")
