"""The policies of the published experiments, as in hkust-adsl/kubernetes-scheduler-simulator (pkg/simulator/plugin),
with their truncation to whole points: that decides many ties.

Each gives a cost per node, the lower the better (the published score, negated), and the card for a pod of part of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.gpu_packing_gradient import GradientDescent
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.pod_shapes import WHOLE, PodShape, ShapeMix

_MAX_CPU: Final = 128_000.0
_MAX_GPU: Final = 8_000


class CostOf(Protocol):
    """What landing on each of some nodes costs; on all of them the pod fits."""

    def __call__(self, shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
        """kinds: (n_nodes, n_kinds) pods there, see kind_of. Returns (n_nodes,) cost and (n_nodes,) card, -1 = n/a."""


def kind_of(shape: PodShape) -> int:
    """GpuClustering keeps pods of one kind together: 0 = without card, 1 = part of a card, 1 + n = n cards."""
    return 0 if not shape.count else 1 if shape.is_shared else 1 + shape.count


def random_nodes(shape: PodShape, nodes: NodeStates, kinds: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """All alike: whoever picks draws lots. Any of the cards with enough left (-gpusel random)."""
    device = np.full(nodes.n_nodes, -1, dtype=np.int64)
    if shape.is_shared:
        lots = np.where(nodes.free_milli >= shape.milli, rng.random(nodes.free_milli.shape), -1.0)
        device = lots.argmax(axis=1).astype(np.int64)
    return np.zeros(nodes.n_nodes), device


def dot_product(shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
    """Tetris' alignment, the least first (dot_product_score.go; -dimext merge -norm max)."""
    cards = np.maximum(nodes.free_milli, 0).sum(axis=1)
    product = nodes.cpu_free / _MAX_CPU * (shape.cpu_milli / _MAX_CPU) + cards / _MAX_GPU * (
        shape.asked_milli / _MAX_GPU
    )
    return -np.trunc(100 * (1 - product / 2)), best_fit_card(shape, nodes)


def gpu_clustering(shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
    """Pods of one kind together (gpu_clustering_score.go): nodes of it alone, of it and others, of none, of others."""
    if not shape.count:
        return np.zeros(nodes.n_nodes), best_fit_card(shape, nodes)
    cards = np.maximum(nodes.free_milli, 0).sum(axis=1)
    has, n_kinds = kinds[:, kind_of(shape)] > 0, (kinds[:, 1:] > 0).sum(axis=1)
    tier = np.where(has, np.where(n_kinds == 1, 75, 50), np.where(n_kinds == 0, 25, 0))
    return -(25 * (_MAX_GPU - cards) // _MAX_GPU + tier).astype(np.float64), best_fit_card(shape, nodes)


def gpu_packing(shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
    """Cards in use before idle cards before idle nodes (gpu_packing_score.go)."""
    if not shape.count:
        return np.zeros(nodes.n_nodes), best_fit_card(shape, nodes)
    n_free = (nodes.free_milli == WHOLE).sum(axis=1)
    # Whole cards are always idle ones; part of a card takes the fullest card that has room, an idle one last.
    tightest = np.where(nodes.free_milli >= shape.milli, nodes.free_milli, 2 * WHOLE).min(axis=1)
    on_used_node = np.where(
        tightest == WHOLE, np.maximum(50 - shape.count, 33), np.maximum(100 - tightest // 10 // 10, 50)
    )
    return -np.where(n_free == nodes.n_devices, np.maximum(33 - n_free, n_free), on_used_node).astype(
        np.float64
    ), best_fit_card(shape, nodes)


def best_fit(shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
    """The least left, cores and cards alike (best_fit_score.go). Normalizing its points does not change their order."""
    cards = np.maximum(nodes.free_milli, 0).sum(axis=1)
    left = (nodes.cpu_free - shape.cpu_milli) / _MAX_CPU * 0.5 + (cards - shape.asked_milli) / _MAX_GPU * 0.5
    return -np.trunc((1 - left) * 100), best_fit_card(shape, nodes)


class Kernel(Protocol):
    """A cost of the product: Packing, or GradientDescent."""

    def cost(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """As CostOf."""


def by(kernel: Kernel) -> CostOf:
    """As the product decides."""

    def cost_of(shape: PodShape, nodes: NodeStates, kinds: Ints) -> tuple[Floats, Ints]:
        return kernel.cost(shape, nodes)

    return cost_of


def best_fit_card(shape: PodShape, nodes: NodeStates) -> Ints:
    """(n_nodes,) the card with the least left that suffices, of equal ones the first (-gpusel best); -1 = n/a."""
    if not shape.is_shared:
        return np.full(nodes.n_nodes, -1, dtype=np.int64)
    left = np.where(nodes.free_milli >= shape.milli, nodes.free_milli, 2 * WHOLE)
    return np.asarray(left.argmin(axis=1).astype(np.int64))


PUBLISHED: Final[dict[str, Callable[[ShapeMix, Sequence[str], np.random.Generator], CostOf]]] = {
    "Random": lambda mix, models, rng: lambda shape, nodes, kinds: random_nodes(shape, nodes, kinds, rng),
    "DotProd": lambda mix, models, rng: dot_product,
    "GpuClustering": lambda mix, models, rng: gpu_clustering,
    "GpuPacking": lambda mix, models, rng: gpu_packing,
    "BestFit": lambda mix, models, rng: best_fit,
    "FGD": lambda mix, models, rng: by(GradientDescent(mix, models)),
}
