"""What zone_table.py knows of nodes, in columns: one row per node, valid until the next change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.predicted.array_rows import grown
from placement.topology.aligned_needs import Units
from placement.topology.alignment import MOST_ZONES, NOWHERE, ZonesLeft
from placement.topology.node_zones import NO_LAYOUT, CardLayout, NodeZones, NumaZone, Scope, TopologyManagerPolicy

_MOST_KINDS: Final = 64
"""Resources of zones with a column; of further ones nothing is known."""


class ZoneColumns:
    """
    kinds, units, total, there, pending, socket : as of ZonesLeft, of more rows than there are nodes
    expected   : like `units`, but pods whose zone is not known are in the first zone that held all of them
    single     : (n,) the policy is single-numa-node
    restricted : (n,) it is restricted, and the zones are few enough to try their sets
    best       : (n,) the same of best-effort
    pod_scope  : (n,) the scope is pod
    threads    : (n,) CPUs of one physical core, 0 = not known
    full_cores : (n,) the kubelet gives whole physical cores only
    fills      : (n,) it takes what is left of a physical core before it breaks another, and has few zones
    layout     : (n,) number in `layouts`, of which the first says nothing
    """

    def __init__(self) -> None:
        self.kinds: Final[dict[str, int]] = {}
        self.layouts: Final = [NO_LAYOUT]
        self._number_of = {NO_LAYOUT: 0}
        self.units, self.total, self.expected = (np.zeros((0, 2, 4), dtype=np.int64) for _ in range(3))
        self.pending = np.zeros((0, 4), dtype=np.int64)
        self.there = np.zeros((0, 2), dtype=bool)
        self.socket = np.zeros((0, 2), dtype=np.int64)
        self.single, self.restricted, self.best, self.pod_scope = _flags(4)
        self.full_cores, self.fills = _flags(2)
        self.threads, self.layout = (np.zeros(0, dtype=np.int64) for _ in range(2))

    def left(self, rows: Ints, most_zones: int | None, *, expected: bool) -> ZonesLeft:
        pending, units = self.pending[rows], self.expected if expected else self.units
        return ZonesLeft(
            units[rows, :most_zones],
            self.there[rows, :most_zones],
            self.kinds,
            self.total[rows, :most_zones],
            np.zeros_like(pending) if expected else pending,
            self.socket[rows, :most_zones],
        )

    def ensure(self, n_rows: int) -> None:
        """Make room for at least `n_rows`."""
        if n_rows > len(self.there):
            self.units, self.total, self.expected = (
                grown(one, n_rows, fill=NOWHERE) for one in (self.units, self.total, self.expected)
            )
            self.pending, self.there, self.layout = (
                grown(self.pending, n_rows),
                grown(self.there, n_rows),
                grown(self.layout, n_rows),
            )
            self.socket, self.threads = grown(self.socket, n_rows, fill=-1), grown(self.threads, n_rows)
            self.single, self.restricted, self.best, self.pod_scope, self.full_cores, self.fills = (
                grown(one, n_rows)
                for one in (self.single, self.restricted, self.best, self.pod_scope, self.full_cores, self.fills)
            )

    def write(self, row: int, found: NodeZones | None, taken: Sequence[Units], threads: int) -> None:
        """
        taken   : of pods that what was found cannot include
        threads : CPUs of one physical core by the labels of the node, 0 = not known
        """
        self.ensure(row + 1)
        self.there[row] = self.single[row] = self.restricted[row] = self.best[row] = False
        self.full_cores[row] = self.fills[row] = False
        self.threads[row] = 0
        self.layout[row] = 0 if found is None else self._number(found.layout)
        if found is None or not found.zones:
            return
        cpus, n_zones = found.cpus, len(found.zones)
        self.single[row] = found.policy is TopologyManagerPolicy.SINGLE_NUMA_NODE
        self.restricted[row] = found.policy is TopologyManagerPolicy.RESTRICTED and n_zones <= MOST_ZONES
        self.best[row] = found.policy is TopologyManagerPolicy.BEST_EFFORT and n_zones <= MOST_ZONES
        self.pod_scope[row] = found.scope is Scope.POD
        self.threads[row] = cpus.threads_per_core or threads
        self.full_cores[row] = cpus.pins and cpus.full_cores
        self.fills[row] = cpus.pins and not cpus.spreads_threads and self.threads[row] > 1 and n_zones <= MOST_ZONES
        named = self._named(found)
        self._widen(n_zones)
        self.there[row, :n_zones] = True
        self.socket[row] = -1
        if cpus.align_by_socket:
            self.socket[row, :n_zones] = _numbered(found.zones)
        of_zones = (self.units, self.total, self.expected)
        for array in of_zones:
            array[row] = NOWHERE
        for kind, column in named.items():
            self.units[row, :n_zones, column] = [zone.available.get(kind, 0) for zone in found.zones]
            self.total[row, :n_zones, column] = [zone.total.get(kind, 0) for zone in found.zones]
        np.maximum(self.total[row], self.units[row], out=self.total[row])
        self.expected[row], self.pending[row] = self.units[row], 0
        for of_pod in taken:
            wanted = [(named[kind], amount) for kind, amount in of_pod.items() if kind in named]
            for column, amount in wanted:
                self.pending[row, column] += amount
                self.units[row, :n_zones, column] -= amount
            _settle_somewhere(self.expected[row, :n_zones], wanted)

    def _named(self, found: NodeZones) -> Mapping[str, int]:
        """Column by resource that the node's kubelet aligns, as far as it is known."""
        kinds = dict.fromkeys(kind for zone in found.zones for kind in zone.available)
        kept = (
            kind
            for kind in kinds
            if (found.cpus.pins or kind != "cpu")
            and (found.cpus.aligns_memory or not (kind == "memory" or kind.startswith("hugepages-")))
        )
        return {kind: at for kind in kept if (at := self._column(kind)) is not None}

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
                self._reshape(self.units.shape[1], 2 * self.units.shape[2])
        return column

    def _widen(self, n_zones: int) -> None:
        if n_zones > self.units.shape[1]:
            self._reshape(n_zones, self.units.shape[2])

    def _reshape(self, n_zones: int, n_kinds: int) -> None:
        n = len(self.units)
        self.units, self.total, self.expected = (
            _wider(one, (n, n_zones, n_kinds), NOWHERE) for one in (self.units, self.total, self.expected)
        )
        self.pending = _wider(self.pending, (n, n_kinds), 0)
        self.socket = _wider(self.socket, (n, n_zones), -1)
        there = np.zeros((n, n_zones), dtype=bool)
        there[:, : self.there.shape[1]] = self.there
        self.there = there


def _flags(n: int) -> list[Bools]:
    return [np.zeros(0, dtype=bool) for _ in range(n)]


def _numbered(zones: Sequence[NumaZone]) -> list[int]:
    """Number of the socket of each zone; a zone that names none has one of its own."""
    names = [zone.socket or f"zone {zone.number}" for zone in zones]
    return [names.index(name) for name in names]


def _settle_somewhere(left: Ints, wanted: Sequence[tuple[int, int]]) -> None:
    """left: (n_zones, n_kinds) a pod takes from the first zone that holds all of it, else from one after the other."""
    holding = [all(of_zone[column] >= amount for column, amount in wanted) for of_zone in left.tolist()]
    if any(holding):
        for column, amount in wanted:
            left[holding.index(True), column] -= amount
        return
    for column, amount in wanted:
        rest = amount
        for of_zone in left:
            taken = min(rest, max(int(of_zone[column]), 0))
            of_zone[column] -= taken
            rest -= taken
        left[0, column] -= rest


def _wider(array: Ints, shape: tuple[int, ...], fill: int) -> Ints:
    wider = np.full(shape, fill, dtype=np.int64)
    wider[tuple(slice(0, n) for n in array.shape)] = array
    return wider
