"""How much of what is idle on a node pods of the mix cannot use.

    F(node) = sum_m p_m * (idle milli that m cannot use there)
            = idle(node) - usable(node)
    usable(node) = sum_m p_m * [m fits] * S(node, milli_m)
    S(node, x)   = sum of the free milli of the cards that have at least x free

m runs over the shapes of the mix, p_m is its weight. What m cannot use is everything idle if it does not fit there for
whatever reason, or asks for no card, and else the cards that have too little left for it. Source: Weng et al. 2023,
"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", section 3.2; so
NodeGpuShareFragAmount in its simulator (pkg/utils/frag.go).

Shapes that differ only in cores, memory and models are counted together: `usable` needs for each pair of milli and
count only how much weight fits by the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from base.arrays import Floats, Ints
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, model_accepted
from profiles.gpu.fragmentation.pod_shapes import ShapeMix


class MixColumns:
    """The shapes of a mix that ask for cards, as columns sorted by what they ask for.

    levels       : (n_levels,) the different milli asked for, rising
    demand_level : (n_demands,) index into levels, of each different pair of milli and count
    demand_count : (n_demands,) cards
    """

    def __init__(self, mix: ShapeMix, models: Sequence[str]) -> None:
        asking = [at for at, shape in enumerate(mix.shapes) if shape.count]
        asking.sort(key=lambda at: (mix.shapes[at].milli, mix.shapes[at].count))
        shapes = [mix.shapes[at] for at in asking]
        self._weight: Floats = mix.weight[asking]  # (n_asking,)
        self._cpu: Floats = np.array([shape.cpu_milli for shape in shapes], dtype=np.float64)
        self._memory: Floats = np.array([shape.memory_mib for shape in shapes], dtype=np.float64)
        takes = [model_accepted(shape.models, models) for shape in shapes]
        self._takes = np.array(takes, dtype=bool).reshape(len(shapes), len(models) + 1).T  # (n_models + 1, n_asking)
        pairs = [(shape.milli, shape.count) for shape in shapes]
        demands = sorted(set(pairs))
        self.levels: Ints = np.array(sorted({milli for milli, _ in demands}), dtype=np.int64)
        self.demand_level: Ints = np.searchsorted(self.levels, [milli for milli, _ in demands]).astype(np.int64)
        self.demand_count: Ints = np.array([count for _, count in demands], dtype=np.int64)
        self._first = np.array([pairs.index(demand) for demand in demands], dtype=np.int64)  # (n_demands,)

    def weight_that_fits(self, cpu_free: Floats, memory_free: Floats, model: Ints) -> Floats:
        """(n_nodes, n_demands) weight of the shapes of each demand for which cores, memory and model suffice."""
        if not len(self._first):
            return np.zeros((len(cpu_free), 0))
        suffices = (cpu_free[:, None] >= self._cpu) & (memory_free[:, None] >= self._memory) & self._takes[model]
        return np.asarray(np.add.reduceat(suffices * self._weight, self._first, axis=1))

    def usable(self, weight: Floats, total: Ints, n_cards: Ints) -> Floats:
        """(...,) milli, usable(node) as above.

        weight  : (..., n_demands) see weight_that_fits
        total   : (..., n_levels) S(node, level)
        n_cards : (..., n_levels) cards that have at least the level free
        """
        enough = n_cards[..., self.demand_level] >= self.demand_count
        return np.asarray((weight * enough * total[..., self.demand_level]).sum(axis=-1))


def room_by_level(free_milli: Ints, levels: Ints) -> tuple[Ints, Ints]:
    """(n_nodes, n_levels) milli free on the cards that have at least the level free, and how many cards these are."""
    enough = free_milli[:, :, None] >= levels  # (n_nodes, most_devices, n_levels)
    return np.asarray((free_milli[:, :, None] * enough).sum(axis=1)), np.asarray(enough.sum(axis=1))


def idle(free_milli: Ints) -> Ints:
    """(n_nodes,) milli free on all cards."""
    return np.asarray(np.maximum(free_milli, 0).sum(axis=1))


def fragmentation(mix: MixColumns, nodes: NodeStates) -> Floats:
    """(n_nodes,) milli, F(node)."""
    weight = mix.weight_that_fits(nodes.cpu_free, nodes.memory_free, nodes.model)
    return idle(nodes.free_milli) - mix.usable(weight, *room_by_level(nodes.free_milli, mix.levels))
