"""Amounts of quotas in words: "4 cores", "16 GiB of memory", "2.5 cards"."""

from __future__ import annotations

from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX
from kube.tables.columns import per_unit
from tenants.pod_amounts import RATES
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
    if resource in RATES:
        return f"{amount / 1e6:.4g} MB/s of {resource.removeprefix(ANNOTATION_PREFIX)}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        size = f"{amount / _GIB:.4g} GiB" if amount >= _GIB or not amount else f"{amount / _MIB:.4g} MiB"
        return f"{size} of {resource}"
    return f"{amount:g} {resource}"
