"""Public list prices, on demand, by instance type: a small dated table, the last source that is asked.

A type that the table lacks has the price of its family for a vCPU times its vCPUs, if it has the memory for each vCPU
that the family has. In the price lists that the table is from, sizes of one family from 2 to 32 vCPUs differ by at most
2 % for a vCPU. A family with GPUs is left out of that: GPUs do not follow the vCPUs. A node of a region that the table
lacks has the price of the region that it has; the source says so. Spot prices move: the table has none. Nor has
it any of Windows, or of GPUs that Google Cloud attaches to ordinary types: such nodes cost more than their type.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Final

from autoscaling.prices.node_labels import costs_more, instance_type, is_spot, region
from autoscaling.prices.node_prices import NodePrice, PricedNode

LIST_CURRENCY: Final = "USD"

_CLOUDS: Final = {"aws": "AWS", "gcp": "Google Cloud", "azure": "Azure"}
_MOST_VCPUS: Final = 32
"""Larger sizes differ: E64s_v3 of Azure costs 10 % less for a vCPU than E4s_v3."""

_MEMORY_TOLERANCE: Final = 0.15
"""A node's capacity has up to so much less memory than its type: kernel and firmware keep some."""

_GIB: Final = 2.0**30
_GPU: Final = re.compile(r"(g|p)[0-9]+[a-z]*\.")
_FAMILY: Final = (  # with and without what says the size
    re.compile(r"(?P<family>[a-z][a-z0-9-]*)\.[a-z0-9-]+"),  # m5.xlarge
    re.compile(r"(?P<family>[a-z][a-z0-9]*-[a-z]+)-[0-9]+"),  # n2-standard-4
    re.compile(r"(?P<family>Standard_[DEF])[0-9]+(?P<rest>[a-z]*_v[0-9]+)"),  # Standard_D4s_v5
)


@dataclass(frozen=True, slots=True)
class ListPrice:
    """One row of the table. per_hour: of LIST_CURRENCY, on demand, Linux"""

    cloud: str
    region: str
    instance_type: str
    vcpus: float
    gib: float
    per_hour: float
    day: date


class ListPrices:
    """Prices of a dated table, by instance type or its family. Implements PriceSource."""

    def __init__(self, table: Iterable[ListPrice]) -> None:
        self._by_type: dict[str, list[ListPrice]] = {}
        self._by_family: dict[str, list[ListPrice]] = {}
        for row in table:
            self._by_type.setdefault(row.instance_type, []).append(row)
            if (name := family(row.instance_type)) and not _GPU.match(row.instance_type):
                self._by_family.setdefault(name, []).append(row)

    def price_of(self, node: PricedNode) -> NodePrice | None:
        kind, where = instance_type(node.labels), region(node.labels)
        if not kind or is_spot(node.labels) or costs_more(node.labels):
            return None
        if (row := _nearest(self._by_type.get(kind, ()), where)) is not None:
            return NodePrice(row.per_hour, _source(row, where))
        alike = (row for row in self._by_family.get(family(kind), ()) if _is_alike(row, node))
        if (row := _nearest(alike, where)) is None:
            return None
        return NodePrice(row.per_hour * node.cores / row.vcpus, f"{_source(row, where)}, by vCPU")


def family(kind: str) -> str:
    """What types of different sizes have in common; "" = the name is of no known form."""
    for form in _FAMILY:
        if found := form.fullmatch(kind):
            return "".join(part for part in found.groupdict().values() if part)
    return ""


@cache
def shipped_table() -> tuple[ListPrice, ...]:
    """Read the table of this package."""
    text = files("autoscaling.prices").joinpath("list_prices.csv").read_text(encoding="utf-8")
    return tuple(
        ListPrice(
            row["cloud"],
            row["region"],
            row["instance_type"],
            float(row["vcpus"]),
            float(row["gib"]),
            float(row["per_hour"]),
            date.fromisoformat(row["date"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def _is_alike(row: ListPrice, node: PricedNode) -> bool:
    """Whether the node has as much memory for a vCPU as the row; not, if either is not known."""
    if not 2 <= node.cores <= _MOST_VCPUS:
        return False
    ratio = (node.memory_bytes / _GIB / node.cores) / (row.gib / row.vcpus)
    return 1 - _MEMORY_TOLERANCE <= ratio <= 1.05


def _nearest(rows: Iterable[ListPrice], where: str) -> ListPrice | None:
    """The row of the region, else the first."""
    found = list(rows)
    return next((row for row in found if row.region == where), found[0] if found else None)


def _source(row: ListPrice, where: str) -> str:
    instead = f" in place of {where}" if where and where != row.region else ""
    return f"list price of {_CLOUDS[row.cloud]}, {row.region}{instead}, {row.day}"
