"""The five resources that hurt, in the one order every array uses on its n_resources axis.

`column` is the usage column of the history layout (docs/understand/history-layout.md); units are base units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from base.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Resource:
    """One dimension a node can run out of.

    counts_as_hot: whether exceeding the hot threshold of it makes a node hot. Memory does not: a node at 85 % memory
    serves as well as one at 50 %, the scheduler only has to keep it from overflowing.
    """

    name: str
    unit: str
    column: str
    counts_as_hot: bool = True


RESOURCES: tuple[Resource, ...] = (
    Resource("cpu", "cores", "cpu_cores"),
    Resource("memory", "bytes", "memory_bytes", counts_as_hot=False),
    Resource("disk", "bytes/s", "disk_bytes_per_second"),
    Resource("network", "bytes/s", "network_bytes_per_second"),
    Resource("log", "bytes/s", "log_bytes_per_second"),
)
CPU, MEMORY, DISK, NETWORK, LOG = range(5)
HOT_RESOURCES: tuple[int, ...] = tuple(i for i, r in enumerate(RESOURCES) if r.counts_as_hot)


def resource_index(name: str) -> int:
    """Position of a resource on the n_resources axis; raises UnknownName."""
    for index, resource in enumerate(RESOURCES):
        if resource.name == name:
            return index
    raise UnknownName("resource", name, [r.name for r in RESOURCES])


def assumed_line(names: Sequence[str]) -> str:
    """Return what each command says of resources with an assumed capacity (forecast.assumed_capacity); "" = of none."""
    return f"capacity of {', '.join(names)} assumed: it counts in scores and is no limit" if names else ""
