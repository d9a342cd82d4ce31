"""Amounts of quotas in words: "4 cores", "16 GiB of memory", "2.5 cards"."""

from __future__ import annotations

from typing import Final

from cluster.tables.columns import per_unit
from kube.objects.objects import ANNOTATION_PREFIX
from tenants.elastic_quota import RATES
from tenants.quota_tree import CARD_UNITS, CARDS

_GIB: Final = 2**30
_MIB: Final = 2**20
_BYTES: Final = ("memory", "ephemeral-storage")


def in_base_units(resource: str, units: int) -> float:
    """Return cores, bytes, bytes a second, cards or counts. resource: a column of a QuotaTree."""
    return units / CARD_UNITS if resource == CARDS else units / per_unit(resource)


def in_words(resource: str, units: int) -> str:
    """Return an amount with its unit, for people. resource: a column of a QuotaTree."""
    amount = in_base_units(resource, units)
    if resource == "cpu":
        return f"{amount:g} core{'' if amount == 1 else 's'}"
    if resource == CARDS:
        return f"{amount:g} card{'' if amount == 1 else 's'}"
    if resource in RATES or is_bytes(resource):
        return f"{in_short(resource, amount)} of {resource.removeprefix(ANNOTATION_PREFIX)}"
    return f"{amount:g} {resource}"


def in_short(resource: str, amount: float) -> str:
    """Return an amount of base units for a cell whose row names the resource."""
    if resource in RATES:
        return f"{amount / 1e6:.4g} MB/s"
    if is_bytes(resource):
        return f"{amount / _GIB:.4g} GiB" if amount >= _GIB or not amount else f"{amount / _MIB:.4g} MiB"
    return f"{amount:.6g}"


def is_bytes(resource: str) -> bool:
    """Return whether amounts of the resource are sizes."""
    return resource in _BYTES or resource.startswith("hugepages-")
