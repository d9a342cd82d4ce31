"""Plugin NearCards: pods with several whole cards go where these are near each other, and get such cards.

node preference   where the cards that are free are in the fewest NVLink groups, then in the fewest NUMA zones, then
                  in zones at the least distance. A node of which nothing is known comes after those that can, and
                  before those that cannot, keep them together
devices           of a node, see below; a pod with one card gets one whose group is broken already

Cards are in groups on one or two levels: joined by NVLink, and of one NUMA zone. A pod gets cards of as few groups as
possible, on the first level that is known and then on the next; among equal choices the one that breaks the fewest
groups of which all cards are free, then the one that leaves the fewest free cards in the groups that it touches.

    free 0 1 2 3 . 5 6 7   groups of 4   3 cards: 5 6 7, for 0 1 2 would break a whole group
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from base.arrays import Bools, Floats, Ints
from kube.objects.objects import PodInfo
from placement.devices.device_demand import WHOLE, GpuDemand, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference, Preferred
from placement.topology.node_zones import CardLayout, Groups
from placement.topology.zone_table import ZoneTable

UNKNOWN: Final = 255
"""Distance between zones if it is not stated (ACPI SLIT)."""

_MOST_COMBINED: Final = 10
"""Groups that are combined in all ways when none holds all; of more, those with the most free."""


def crossings(free: Bools, groups: Groups, count: int) -> Ints:
    """(n_nodes,) groups beyond the first that `count` cards take at least; as many as there are where they do not fit.

    free : (n_nodes, n_devices) whole cards that are free; a card in no group is one by itself
    """
    held = np.cumsum(-np.sort(-_free_by_group(free, groups), axis=1), axis=1)  # (n_nodes, n_groups), the largest first
    return np.asarray((held < count).sum(axis=1), dtype=np.int64)


def local_room(free: Bools, groups: Groups, count: int) -> Ints:
    """(n_nodes,) times that `count` cards are there in one group each. free: (n_nodes, n_devices)"""
    return np.asarray((_free_by_group(free, groups) // count).sum(axis=1), dtype=np.int64)


def _free_by_group(free: Bools, groups: Groups) -> Ints:
    """(n_nodes, n_groups)"""
    n_devices = free.shape[1]
    each = _and_the_rest(groups, range(n_devices))
    member = np.array([[card in group for card in range(n_devices)] for group in each], dtype=np.int64)
    return free.astype(np.int64) @ member.T


def choose_local(free: Collection[int], levels: Sequence[Groups], count: int) -> tuple[int, ...] | None:
    """Return `count` of the free cards, ascending; None = there are fewer.

    levels : from the one that matters most; none = all cards are equally near
    """
    left = sorted(free)
    if count < 1 or len(left) < count:
        return None
    if not levels:
        return tuple(left[:count])
    return min(_choices(left, levels, count), key=lambda cards: _price(cards, left, levels))


def distance(zones: Sequence[int], costs: Mapping[int, Mapping[int, int]]) -> float:
    """Mean distance between these zones, each to itself included, as scheduler-plugins has it (nodesAvgDistance of
    pkg/noderesourcetopology/least_numa.go)."""
    if not zones:
        return float(UNKNOWN)
    return sum(costs.get(a, {}).get(b, UNKNOWN) for a in zones for b in zones) / len(zones) ** 2


def _choices(left: Sequence[int], levels: Sequence[Groups], count: int) -> list[tuple[int, ...]]:
    """Ways to take them from as few groups of the first level as possible; never none."""
    if not levels:
        return [tuple(left[:count])]
    present = [mine for group in _and_the_rest(levels[0], left) if (mine := [card for card in group if card in left])]
    present.sort(key=lambda mine: (-len(mine), mine))
    n_groups, held = 0, 0
    while held < count:
        held += len(present[n_groups])
        n_groups += 1
    made = []
    for chosen in combinations(present[: max(_MOST_COMBINED, n_groups)], n_groups):
        if sum(map(len, chosen)) < count:
            continue
        # One of the groups gives what is left to take, the others all that they have.
        for last in range(n_groups):
            taken = [card for at, mine in enumerate(chosen) if at != last for card in mine]
            rest = count - len(taken)
            if 0 < rest <= len(chosen[last]):
                ways = _choices(chosen[last], levels[1:], rest)
                made += [tuple(sorted((*taken, *cards))) for cards in ways]
    return made


def _price(
    cards: tuple[int, ...], left: Sequence[int], levels: Sequence[Groups]
) -> tuple[tuple[int, ...], int, int, tuple[int, ...]]:
    """Return crossings by level, whole groups that are broken, and free cards left next to these; then the
    first ones.
    """
    taken, free = set(cards), set(left)
    crossed, broken, beside = [], 0, 0
    for groups in levels:
        touched = [group for group in _and_the_rest(groups, left) if not taken.isdisjoint(group)]
        crossed.append(len(touched))
        broken += sum(free.issuperset(group) and not taken.issuperset(group) for group in touched)
        beside += sum(len(free.intersection(group)) for group in touched) - len(cards)
    return tuple(crossed), broken, beside, cards


def _and_the_rest(groups: Groups, cards: Collection[int]) -> Groups:
    """With a group of its own for each card that is in none."""
    grouped = {card for group in groups for card in group}
    return (*groups, *((card,) for card in sorted(cards) if card not in grouped))


class NearCards(NodePreference):
    """NodePreference, and `choose` for DeviceTable.choosers; under the lock of the tables."""

    name = "NearCards"

    def __init__(self, zones: ZoneTable, devices: DeviceTable) -> None:
        self._zones, self._devices = zones, devices

    # DeviceTable.choosers

    def choose(self, row: int, demand: GpuDemand, pod: PodInfo) -> tuple[int, ...] | None:
        """Which cards of the node of a row it gets; None = there are not enough, it wants a share, or nothing is known
        of the node."""
        layout = self._layout(row)
        if not layout.levels or demand.milli != WHOLE:
            return None
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
