"""What zone_table.py knows of nodes, in columns: one row per node, valid until the next change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from extender.topology.alignment import NOWHERE, Units
from extender.topology.node_zones import NO_LAYOUT, CardLayout, NodeZones, Policy, Scope
from forecast.arrays import Ints
from scorer.predicted.growing import grown

__all__ = ["ZoneColumns"]

_MOST_KINDS: Final = 64
"""Resources of zones with a column; of further ones nothing is known."""


class ZoneColumns:
    """
    kinds, units, there : as of ZonesLeft, of more rows than there are nodes
    single    : (n,) the policy is single-numa-node
    pod_scope : (n,) and the scope is pod
    layout    : (n,) number in `layouts`, of which the first says nothing
    """

    def __init__(self) -> None:
        self.kinds: Final[dict[str, int]] = {}
        self.layouts: Final = [NO_LAYOUT]
        self._number_of = {NO_LAYOUT: 0}
        self.units = np.zeros((0, 2, 4), dtype=np.int64)
        self.there = np.zeros((0, 2), dtype=bool)
        self.single = np.zeros(0, dtype=bool)
        self.pod_scope = np.zeros(0, dtype=bool)
        self.layout = np.zeros(0, dtype=np.int64)

    def ensure(self, n_rows: int) -> None:
        """There are so many rows at least."""
        if n_rows > len(self.there):
            self.units = grown(self.units, n_rows, fill=NOWHERE)
            self.there = grown(self.there, n_rows)
            self.single = grown(self.single, n_rows)
            self.pod_scope = grown(self.pod_scope, n_rows)
            self.layout = grown(self.layout, n_rows)

    def write(self, row: int, found: NodeZones | None, taken: Iterable[Units]) -> None:
        """taken: from every zone, by pods that what was found cannot include."""
        self.ensure(row + 1)
        self.there[row] = self.single[row] = False
        self.layout[row] = 0 if found is None else self._number(found.layout)
        if found is None or not found.zones:
            return
        self.single[row] = found.policy is Policy.SINGLE_NUMA_NODE
        self.pod_scope[row] = found.scope is Scope.POD
        n_zones = len(found.zones)
        named = {kind: at for zone in found.zones for kind in zone.available if (at := self._column(kind)) is not None}
        self._widen(n_zones)
        self.there[row, :n_zones] = True
        units = np.full(self.units.shape[1:], NOWHERE, dtype=np.int64)
        for at, zone in enumerate(found.zones):
            for kind, column in named.items():
                units[at, column] = zone.available.get(kind, 0)
        for of_pod in taken:
            for kind, amount in of_pod.items():
                if kind in named:
                    units[:n_zones, named[kind]] -= amount
        self.units[row] = units

    def _number(self, layout: CardLayout) -> int:
        number = self._number_of.get(layout)
        if number is None:
            number = self._number_of[layout] = len(self.layouts)
            self.layouts.append(layout)
        return number

    def _column(self, kind: str) -> int | None:
        column = self.kinds.get(kind)
        if column is None and len(self.kinds) < _MOST_KINDS:
            column = self.kinds[kind] = len(self.kinds)
            if column >= self.units.shape[2]:
                self.units = _wider(self.units, (self.units.shape[1], 2 * self.units.shape[2]))
        return column

    def _widen(self, n_zones: int) -> None:
        if n_zones > self.units.shape[1]:
            self.units = _wider(self.units, (n_zones, self.units.shape[2]))
            there = np.zeros((len(self.there), n_zones), dtype=bool)
            there[:, : self.there.shape[1]] = self.there
            self.there = there


def _wider(units: Ints, shape: tuple[int, int]) -> Ints:
    wider = np.full((len(units), *shape), NOWHERE, dtype=np.int64)
    wider[:, : units.shape[1], : units.shape[2]] = units
    return wider
