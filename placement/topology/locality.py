"""Which cards of a node are near each other, and which of them a pod gets: pure.

Cards are in groups on one or two levels: joined by NVLink, and of one NUMA zone. A pod gets cards of as few groups as
possible, on the first level that is known and then on the next; among equal choices the one that breaks the fewest
groups of which all cards are free, then the one that leaves the fewest free cards in the groups that it touches.

    free 0 1 2 3 . 5 6 7   groups of 4   3 cards: 5 6 7, for 0 1 2 would break a whole group
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from placement.topology.node_zones import Groups

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
