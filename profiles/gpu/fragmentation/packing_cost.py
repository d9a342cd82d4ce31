"""Where a pod costs the cards of the cluster least: a cost per node, the lower the better.

    cost = 10 * waste + crowding                                                       thousandths of a card
    waste    = 1000 * (worth(node) - worth(node with the pod))
    crowding = sum_m w_m * (room_m(node) - room_m(node with the pod))
    w_m     ~ p_m / room_m(all nodes, idle),                                           summing to 1

`worth` is that of remainder_value.py: above all, a pod goes where what it leaves of the node, cards and cores together,
is of most use. (What the pod itself is worth is the same wherever it goes, so it is left out.) `room_m` is that of
remainder_value.py: of places as good, those are taken where the mix loses least of what the cluster has little of, such
as cards of a model that many ask for by name. m runs over the shapes of the mix, p_m is its weight.

FGD (benchmarks/gpu_packing_gradient.py) asks whether one more pod of each shape fits on the node. This asks how many:
cores left without cards, and cards without cores, are seen long before the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Final, Self

import numpy as np

from base.arrays import Floats, Ints
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, fits
from profiles.gpu.fragmentation.pod_shapes import WHOLE, PodShape, ShapeMix
from profiles.gpu.fragmentation.remainder_value import NodeWorth, RoomColumns

_WASTE_COUNTS: Final = 10.0 * WHOLE
_LEAST_ROOM: Final = 0.01
"""Of all cards: the room of a shape counts as at least this much."""
_MOVED: Final = 0.5


class Packing:
    """What a node costs depends on that node, the mix, and what the nodes of the cluster have in all: costs can be kept
    as long as the node does not change and `following` gives the same object."""

    def __init__(self, mix: ShapeMix, models: Sequence[str], nodes: NodeStates | None = None) -> None:
        """
        models : names by index in NodeStates.model; the list may grow later
        nodes  : all of the cluster; None = nothing is known to be scarce
        """
        self.mix, self._models, self._n_models = mix, models, len(models)
        self._worth = NodeWorth(mix)
        self._columns = RoomColumns(mix, models)
        self._weigh(None if nodes is None else self._room_in(nodes))

    def following(self, nodes: NodeStates) -> Self:
        """Return itself; or one with new costs, if the room for some shape changed by half, or a new model came.

        nodes : all of the cluster
        """
        if len(self._models) != self._n_models:
            return type(self)(self.mix, self._models, nodes)
        room = self._room_in(nodes)
        if self._room is not None and (np.abs(room - self._room) <= _MOVED * self._room).all():
            return self
        other = copy(self)
        other._weigh(room)
        return other

    def cost(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """What landing there costs, and which card the pod takes.

        Returns (n_nodes,) cost, inf = it does not fit, and (n_nodes,) card for a pod of part of a card, -1 = n/a.
        """
        of_room = self._cost_of_part if shape.is_shared else self._cost_of_whole
        has_room = fits(shape, nodes, self._models)
        if has_room.all() and nodes.n_nodes:
            return of_room(shape, nodes)
        cost, device = np.full(nodes.n_nodes, np.inf), np.full(nodes.n_nodes, -1, dtype=np.int64)
        room = np.flatnonzero(has_room)
        if len(room):
            cost[room], device[room] = of_room(shape, nodes.take(room))
        return cost, device

    # Inside

    def _room_in(self, nodes: NodeStates) -> Floats:
        """(n_shapes,) milli that they have room for when idle."""
        idle = replace(
            nodes,
            cpu_free=nodes.cpu_total,
            memory_free=nodes.memory_total,
            free_milli=np.where(nodes.free_milli < 0, -1, WHOLE),
        )
        least = max(_LEAST_ROOM * WHOLE * float(nodes.n_devices.sum()), 1.0)
        return np.maximum(self._columns.in_cluster(idle), least)

    def _weigh(self, room: Floats | None) -> None:
        """room: (n_shapes,) milli in the cluster."""
        self._room, columns = room, self._columns
        scarcity = columns.weight
        if room is not None:
            scarcity = scarcity / room
        scarcity = scarcity / max(scarcity.sum(), 1e-300)
        # Of a pod of each column, by model; the last is the unknown one.
        self._weights = np.zeros((self._n_models + 1, columns.n_columns))
        for model, takes in enumerate(columns.takes):
            np.add.at(self._weights[model], columns.column[takes], scarcity[takes])
        self._weights *= columns.asked

    def _crowding(self, shape: PodShape, nodes: NodeStates, rows: Ints | None, before: Ints, after: Ints) -> Floats:
        """(n_tried,) milli of weighed room, sum_m w_m * room_m, that the pod takes.

        rows   : (n_tried,) node of each place that is tried; None = each node, once
        before : (n_nodes, n_levels) parts on the cards, see RoomColumns
        after  : (n_tried, n_levels) the same with the pod
        """
        cpu, memory, model, n_nodes = nodes.cpu_free, nodes.memory_free, nodes.model, nodes.n_nodes
        # A model that came later is as good as unknown until `following` is asked.
        weights = self._weights[np.where(model < self._n_models, model, -1)]  # (n_nodes, n_columns)
        tried = slice(None) if rows is None else rows
        pods = self._columns.pods(  # of small arrays: one call, not two
            np.concatenate([cpu, cpu[tried] - shape.cpu_milli]),
            np.concatenate([memory, memory[tried] - shape.memory_mib]),
            np.concatenate([before, after]),
        )
        room = np.einsum("nc,nc->n", weights, pods[:n_nodes])
        return np.asarray(room[tried] - np.einsum("nc,nc->n", weights[tried], pods[n_nodes:]))

    def _cost_of_whole(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """Of a pod that asks for whole cards, or for none: all wholly free cards are the same."""
        parts = self._columns.parts_on(nodes.free_milli)
        crowding = self._crowding(shape, nodes, None, parts, parts - shape.count * self._columns.parts[WHOLE])
        cost = _WASTE_COUNTS * self._worth.lost_by_whole(shape, nodes) + crowding
        return cost, np.full(nodes.n_nodes, -1, dtype=np.int64)

    def _cost_of_part(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        free, parts, of_milli = nodes.free_milli, self._columns.parts_on(nodes.free_milli), self._columns.parts
        # Of cards that have as much left, the first will do.
        is_repeated = np.tril(free[:, :, None] == free[:, None, :], -1).any(axis=2)
        row, card = np.nonzero((free >= shape.milli) & ~is_repeated)  # (n_tried,) each
        milli = free[row, card]
        after = parts[row] - of_milli[milli] + of_milli[milli - shape.milli]
        cost = np.full(free.shape, np.inf)  # (n_nodes, most_devices)
        cost[row, card] = _WASTE_COUNTS * self._worth.lost_by_cards(shape, nodes, row, card)
        cost[row, card] += self._crowding(shape, nodes, row, parts, after)
        device = cost.argmin(axis=1).astype(np.int64)
        return cost[np.arange(nodes.n_nodes), device], device
