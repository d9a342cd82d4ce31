"""Plugin NearCards: pods with several whole cards go where these are near each other, and get such cards.

node preference   where the cards that are free are in the fewest NVLink groups, then in the fewest NUMA zones, then
                  in zones at the least distance. A node of which nothing is known comes after those that can, and
                  before those that cannot, keep them together
devices           of a node, see locality.py; a pod with one card gets one whose group is broken already
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np

from base.arrays import Bools, Floats, Ints
from kube.objects.objects import PodInfo
from placement.devices.demand import WHOLE, GpuDemand, gpu_demand
from placement.devices.device_table import Choose, DeviceTable
from placement.filters.filter import ClusterView
from placement.plugins import Preferred
from placement.topology.locality import choose_local, crossings, distance, local_room
from placement.topology.node_zones import CardLayout
from placement.topology.zone_table import ZoneTable


class NearCards:
    """NodePreference, and `choose` for DeviceTable.choose; under the lock of the tables.

    otherwise : who chooses for shares, and on nodes of which nothing is known
    """

    name = "NearCards"

    def __init__(self, zones: ZoneTable, devices: DeviceTable, otherwise: Choose | None = None) -> None:
        """otherwise: None = best fit."""
        self._zones, self._devices = zones, devices
        self.otherwise: Choose = otherwise or devices.best_fit

    # DeviceTable.choose

    def choose(self, row: int, demand: GpuDemand, pod: PodInfo) -> tuple[int, ...] | None:
        """Which cards of the node of a row it gets; None = there are not enough."""
        layout = self._layout(row)
        if not layout.levels or demand.milli != WHOLE:
            return self.otherwise(row, demand, pod)
        return _chosen(layout, self._free(row), demand.count)

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """One pod at a time where the next one might find other cards."""
        demand = gpu_demand(pod, self._devices.options)
        self._zones.catch_up()
        if demand is None or demand.count < 2 or len(rows) < 2 or not len(self._zones):
            return Preferred(rows, n_pods)
        count = demand.count
        crossed, is_all_local = self._crossed(rows, count)
        best = crossed[np.lexsort((crossed[:, 1], crossed[:, 0]))[0]]
        kept = (crossed == best).all(axis=1)
        if best.max() < 1:
            return Preferred(rows[kept], n_pods if is_all_local[kept].all() else 1)
        nodes = rows[kept]
        away = np.array([self._distance(row, count) for row in nodes.tolist()])
        return Preferred(nodes[away == away.min()], 1)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing: like pods ask for the same cards."""
        return None

    # Inside

    def _crossed(self, rows: Ints, count: int) -> tuple[Floats, Bools]:
        """Return the NVLink groups and NUMA zones beyond the first that the cards take, (n_nodes, 2), 0.5 = unknown;
        and whether as many pods as fit keep theirs together, or that is unknown, (n_nodes,).
        """
        crossed = np.full((len(rows), 2), 0.5)
        is_all_local = np.ones(len(rows), dtype=bool)
        free = self._devices.free_milli[rows] == WHOLE
        layouts = self._zones.layout[rows]
        for number in np.unique(layouts[layouts > 0]).tolist():
            at = np.flatnonzero(layouts == number)
            # Without links that are known zones are all there is to go by, and the other way round.
            levels = self._zones.layouts[number].levels
            for column, groups in enumerate((levels[0], levels[-1])):
                crossed[at, column] = crossings(free[at], groups, count)
                is_all_local[at] &= local_room(free[at], groups, count) == free[at].sum(axis=1) // count
        return crossed, is_all_local

    def _layout(self, row: int) -> CardLayout:
        self._zones.catch_up()
        return self._zones.layouts[int(self._zones.layout[row])]

    def _free(self, row: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self._devices.free_milli[row] == WHOLE).tolist())

    def _distance(self, row: int, count: int) -> float:
        """Between the zones of the cards that the pod would get."""
        layout = self._layout(row)
        cards = set(_chosen(layout, self._free(row), count) or ())
        pairs = zip(layout.zones, layout.numa, strict=True)
        return distance([zone for zone, group in pairs if not cards.isdisjoint(group)], self._zones.costs(row))


@lru_cache(maxsize=4096)
def _chosen(layout: CardLayout, free: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """Nodes are built alike, and mostly full or empty."""
    return choose_local(free, layout.levels, count)
