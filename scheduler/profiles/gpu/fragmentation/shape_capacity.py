"""How much room nodes have for pods of each shape of a mix.

    pods_m(node) = min(floor(sum over cards of floor(free / milli_m) / count_m), cores free / cores_m,
                       memory free / memory_m);   0 if m does not fit at all
    room_m(node) = pods_m(node) * count_m * milli_m        thousandths of cards

Cores and memory count in fractions: half a pod's worth of cores that is left over is worth something to other shapes.
Only cards of a model that m takes count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates, model_accepted
from scheduler.profiles.gpu.fragmentation.shapes import WHOLE, PodShape, ShapeMix

_HARDLY_ANY: Final = 1e-6
"""Milli cores or MiB added to what is free: a pod without a request has enough, and an exact fit fits."""


class RoomColumns:
    """The shapes of a mix that ask for cards, in columns; those that differ only in models share one.

    weight : (n_shapes,) of the shapes of the mix that ask for cards
    column : (n_shapes,) of each of them
    takes  : (n_models + 1, n_shapes) whether it takes cards of the model; the last row is of the unknown one
    asked  : (n_columns,) milli of all cards of a pod
    parts  : (1002, n_levels) parts of each size in n milli; the last row is of -1, no card
    """

    def __init__(self, mix: ShapeMix, models: Sequence[str]) -> None:
        asking = [at for at, shape in enumerate(mix.shapes) if shape.count]
        shapes = [mix.shapes[at] for at in asking]
        self.weight: Floats = mix.weight[asking]
        columns = list(dict.fromkeys(_without_models(shape) for shape in shapes))
        at_column = {shape: at for at, shape in enumerate(columns)}
        self.column: Ints = np.array([at_column[_without_models(shape)] for shape in shapes], dtype=np.int64)
        takes = [model_accepted(shape.models, models) for shape in shapes]
        self.takes = np.array(takes, dtype=bool).reshape(len(takes), len(models) + 1).T
        self.asked: Floats = np.array([shape.asked_milli for shape in columns], dtype=np.float64)
        self._per_cpu: Floats = np.array([1 / max(shape.cpu_milli, 1e-12) for shape in columns], dtype=np.float64)
        self._per_memory: Floats = np.array([1 / max(shape.memory_mib, 1e-12) for shape in columns], dtype=np.float64)
        levels = np.array(sorted({shape.milli for shape in columns}), dtype=np.int64)
        self.parts: Ints = np.vstack([np.arange(WHOLE + 1)[:, None] // levels, np.zeros_like(levels)]).astype(np.int64)
        demands = sorted({(shape.milli, shape.count) for shape in columns})
        at_demand = {demand: at for at, demand in enumerate(demands)}
        self._demand: Ints = np.array([at_demand[shape.milli, shape.count] for shape in columns], dtype=np.int64)
        self._level: Ints = np.searchsorted(levels, [milli for milli, _ in demands]).astype(np.int64)
        self._count: Ints = np.array([count for _, count in demands], dtype=np.int64)

    @property
    def n_columns(self) -> int:
        """Different shapes, models aside."""
        return len(self.asked)

    def parts_on(self, free_milli: Ints) -> Ints:
        """(n_nodes, n_levels) parts of each size that the cards have, of (n_nodes, most_devices) milli free."""
        return np.asarray(self.parts[free_milli].sum(axis=1))

    def pods(self, cpu_free: Floats, memory_free: Floats, parts: Ints) -> Floats:
        """(n_nodes, n_columns) pods_m(node), models aside.

        parts : (n_nodes, n_levels) see parts_on
        """
        by_cards = (parts.take(self._level, axis=1) // self._count).astype(np.float64)  # (n_nodes, n_demands)
        pods: Floats = by_cards.take(self._demand, axis=1)
        np.minimum(pods, (cpu_free[:, None] + _HARDLY_ANY) * self._per_cpu, out=pods)
        np.minimum(pods, (memory_free[:, None] + _HARDLY_ANY) * self._per_memory, out=pods)
        pods *= pods >= 1
        return pods

    def in_cluster(self, nodes: NodeStates) -> Floats:
        """(n_shapes,) room_m of all nodes together."""
        pods = self.pods(nodes.cpu_free, nodes.memory_free, self.parts_on(nodes.free_milli))
        model = np.where(nodes.model < 0, len(self.takes) - 1, nodes.model)
        of_models = np.array([pods[model == one].sum(axis=0) for one in range(len(self.takes))])
        return np.asarray(((of_models * self.asked)[:, self.column] * self.takes).sum(axis=0))


def _without_models(shape: PodShape) -> PodShape:
    return PodShape(shape.cpu_milli, shape.memory_mib, shape.count, shape.milli)
