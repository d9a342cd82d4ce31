"""Fragmentation gradient descent (FGD): a pod goes where it makes fragmentation grow least, or shrink most.

    growth = F(node with the pod) - F(node) = usable(node) - usable(node with the pod) - what the pod asks for
    points = floor(100 * sigmoid(-growth / 1000))                                       0 to 100, cost = -points

Source: Weng et al. 2023 (see profiles/gpu/fragmentation/fragmentation.py), and its simulator,
pkg/simulator/plugin/fgd_score.go. The whole points are part of it: they leave many nodes equal, of which the first is
taken, so that nodes fill up one after the other.
With the growth itself as cost about a twentieth less of the cards of the published trace is allocated.

profiles/gpu/fragmentation/packing_cost.py does better; this is what it is measured by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Floats, Ints
from profiles.gpu.fragmentation.fragmentation import MixColumns, room_by_level
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, fits
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix


class GradientDescent:
    """What a node costs depends on that node and the mix alone."""

    def __init__(self, mix: ShapeMix, models: Sequence[str]) -> None:
        """models: names by index in NodeStates.model."""
        self._mix, self._models = MixColumns(mix, models), models

    def cost(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """(n_nodes,) less points, inf = it does not fit; (n_nodes,) card for a pod of part of one, -1 = n/a."""
        cost, device = np.full(nodes.n_nodes, np.inf), np.full(nodes.n_nodes, -1, dtype=np.int64)
        room = np.flatnonzero(fits(shape, nodes, self._models))
        if not len(room):
            return cost, device
        some = nodes.take(room)
        if shape.is_shared:
            points = _points(growth_by_card(shape, self._mix, some))  # (n_room, most_devices)
            device[room] = points.argmax(axis=1)
            cost[room] = -points.max(axis=1)
        else:
            cost[room] = -_points(growth_of_whole(shape, self._mix, some))
        return cost, device


def growth_of_whole(shape: PodShape, mix: MixColumns, nodes: NodeStates) -> Floats:
    """(n_nodes,) milli by which F grows with a pod that asks for whole cards, or for none; on all of them it fits.

    Which of the wholly free cards it takes makes no difference.
    """
    total, n_cards, before, weight = _around(shape, mix, nodes)
    # A wholly free card counts for every level.
    return before - mix.usable(weight, total - shape.asked_milli, n_cards - shape.count) - shape.asked_milli


def growth_by_card(shape: PodShape, mix: MixColumns, nodes: NodeStates) -> Floats:
    """(n_nodes, most_devices) the same with a pod that takes part of that card; inf = too little is left of it."""
    total, n_cards, before, weight = _around(shape, mix, nodes)
    free = nodes.free_milli[:, :, None]  # (n_nodes, most_devices, 1)
    left = free - shape.milli
    counts, still_counts = free >= mix.levels, left >= mix.levels  # (n_nodes, most_devices, n_levels)
    after = mix.usable(
        weight[:, None, :],
        total[:, None, :] + left * still_counts - free * counts,
        n_cards[:, None, :] + still_counts - counts,
    )  # (n_nodes, most_devices)
    return np.where(left[:, :, 0] < 0, np.inf, before[:, None] - after - shape.milli)


def _around(shape: PodShape, mix: MixColumns, nodes: NodeStates) -> tuple[Ints, Ints, Floats, Floats]:
    """Before the pod: milli and cards by level, and `usable`; with it: the weight that cores and memory suffice for."""
    total, n_cards = room_by_level(nodes.free_milli, mix.levels)
    before = mix.usable(mix.weight_that_fits(nodes.cpu_free, nodes.memory_free, nodes.model), total, n_cards)
    weight = mix.weight_that_fits(nodes.cpu_free - shape.cpu_milli, nodes.memory_free - shape.memory_mib, nodes.model)
    return total, n_cards, before, weight


def _points(growth: Floats) -> Floats:
    """-1 of an infinite growth."""
    return np.asarray(np.where(np.isinf(growth), -1.0, np.trunc(100 / (1 + np.exp(np.minimum(growth, 1e5) / 1000)))))
