"""What the rest of a node is worth to the pods of a mix, in cards: what could be cut of it, if cores had a price.

Serving all pods of the mix from the fewest cards, cores aside, is the cutting-stock problem (Gilmore and Gomory 1961,
"A Linear Programming Approach to the Cutting-Stock Problem"), a pod of n whole cards being n pieces of 1000 milli:

    min sum_j x_j   over ways j to cut a card, a_ij pieces of size i each,   such that sum_j a_ij x_j >= demand_i

Its dual prices y_i say what a piece of size i costs in cards; a whole card costs 1. With c_i cores to a piece, on the
mean of the mix, a node is worth the best set of pieces that its cards and its cores suffice for. That is bounded by

    worth(node) = min over prices q >= 0 of a core of   q * cores free + sum over cards of best_q(free)
    best_q(f)   = max sum_i n_i * (y_i - q * c_i)   over n_i >= 0 with sum_i n_i size_i <= f

(Lagrange's relaxation of the cores). A node whose cores are gone is worth nothing though its cards are idle, and cores
are worth nothing where the cards are taken: so the bound says which of the two a pod would strand.

How much room nodes have for pods of each shape of a mix.

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
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates, model_accepted
from profiles.gpu.fragmentation.pod_shapes import WHOLE, PodShape, ShapeMix

_MOST_WAYS: Final = 500
_CLOSE: Final = 1e-9

_PRICES: Final = np.concatenate(([0.0], np.geomspace(0.05, 10.0, 19)))
"""Of the cores that a card's worth of pods asks for, in cards: beyond the last, only cores count."""

_HARDLY_ANY: Final = 1e-6
"""Milli cores or MiB added to what is free: a pod without a request has enough, and an exact fit fits."""


class NodeWorth:
    """prices: (n_prices,) cards per milli core; best: (1002, n_prices) best_q(f); its last row is of -1, no card."""

    def __init__(self, mix: ShapeMix) -> None:
        demand: dict[int, float] = {}
        cores: dict[int, float] = {}
        for shape, weight in zip(mix.shapes, mix.weight.tolist(), strict=True):
            if shape.count and weight > 0:
                demand[shape.milli] = demand.get(shape.milli, 0.0) + weight * shape.count
                cores[shape.milli] = cores.get(shape.milli, 0.0) + weight * shape.cpu_milli
        demand.setdefault(WHOLE, 1e-6)  # an idle card is never worth less than a card
        cores.setdefault(WHOLE, 0.0)
        sizes = np.array(sorted(demand), dtype=np.int64)
        asked = np.array([demand[size] for size in sizes.tolist()])
        per_piece = np.array([cores[size] for size in sizes.tolist()]) / asked  # milli cores
        in_cards = prices_of_pieces(sizes, asked)
        per_card = max(float((per_piece * asked).sum() / (in_cards * asked).sum()), 1.0)  # milli cores
        self.prices: Floats = _PRICES / per_card
        best, _ = _best_cut(sizes, in_cards - self.prices[:, None] * per_piece)
        self.best: Floats = np.vstack([best.T, np.zeros_like(self.prices)])

    def worth(self, nodes: NodeStates) -> Floats:
        """(n_nodes,) cards."""
        return self._least(nodes.cpu_free, self._of_cards(nodes).sum(axis=1))

    def lost_by_whole(self, shape: PodShape, nodes: NodeStates) -> Floats:
        """(n_nodes,) cards by which a pod of whole cards, or of none, makes the node's worth less."""
        before = self._of_cards(nodes).sum(axis=1)
        after = self._least(nodes.cpu_free - shape.cpu_milli, before - shape.count * self.best[WHOLE])
        return self._least(nodes.cpu_free, before) - after

    def lost_by_cards(self, shape: PodShape, nodes: NodeStates, row: Ints, card: Ints) -> Floats:
        """(n_tried,) the same for a pod of part of a card, on these cards of these nodes, which have enough left.

        row, card: (n_tried,)
        """
        free = nodes.free_milli[row, card]
        before = self._of_cards(nodes).sum(axis=1)  # (n_nodes, n_prices)
        of_cards = before[row] - self.best[free] + self.best[free - shape.milli]  # (n_tried, n_prices)
        after = self._least(nodes.cpu_free[row] - shape.cpu_milli, of_cards)
        return np.asarray(self._least(nodes.cpu_free, before)[row] - after)

    def _of_cards(self, nodes: NodeStates) -> Floats:
        """(n_nodes, most_devices, n_prices) best_q of each card."""
        return np.asarray(self.best[nodes.free_milli])

    def _least(self, cpu_free: Floats, of_cards: Floats) -> Floats:
        """(...,) over the prices. cpu_free: (...,) milli cores; of_cards: (..., n_prices) all cards of the node."""
        return np.asarray((cpu_free[..., None] * self.prices + of_cards).min(axis=-1))


def prices_of_pieces(sizes: Ints, demand: Floats) -> Floats:
    """(n_sizes,) cards that a piece of each size costs. Ways to cut are added while one is worth more than a card.

    sizes  : (n_sizes,) milli, rising, 1 to 1000
    demand : (n_sizes,) pieces, > 0, in any unit
    """
    from scipy.optimize import linprog  # half a second and 30 MB that only this profile needs

    ways = [_ways_of_two(sizes)]
    for _ in range(_MOST_WAYS):
        pieces = np.vstack(ways)  # (n_ways, n_sizes)
        solved = linprog(np.ones(len(pieces)), A_ub=-pieces.T, b_ub=-demand / demand.sum(), method="highs")
        prices: Floats = -np.asarray(solved.ineqlin.marginals, dtype=np.float64)
        best, last = _best_cut(sizes, prices[None, :])
        if best[0, WHOLE] <= 1 + _CLOSE:
            break
        ways.append(_pieces_of(sizes, last[0])[None, :])
    return prices


def _ways_of_two(sizes: Ints) -> Floats:
    """(n_ways, n_sizes) one piece, or as many as fit, of one size, and of another as many as then fit.

    Nearly all that is needed: with these to begin with two programmes are solved for the trace's 21 sizes, not 24.
    """
    each = np.eye(len(sizes), dtype=np.int64)
    first = np.vstack([each, each * (WHOLE // sizes)])  # (2 n_sizes, n_sizes)
    second = (WHOLE - first @ sizes)[:, None] // sizes  # (2 n_sizes, n_sizes) pieces
    ways = first[:, None, :] + second[:, :, None] * each
    return np.unique(ways.reshape(-1, len(sizes)), axis=0).astype(np.float64)


def _best_cut(sizes: Ints, values: Floats) -> tuple[Floats, Ints]:
    """Return the highest value of each number of milli, and one piece of that.

    values : (n_lists, n_sizes) of a piece of each size
    Returns (n_lists, 1001) value, and (n_lists, 1001) index of a size, -1 = a milli is left.
    """
    step = int(np.gcd.reduce(np.append(sizes, WHOLE)))  # between amounts that differ
    lengths, n_steps, n_lists = sizes // step, WHOLE // step, len(values)
    best, last = np.zeros((n_lists, n_steps + 1)), np.full((n_lists, n_steps + 1), -1, dtype=np.int64)
    every = np.arange(n_lists)
    for amount in range(1, n_steps + 1):
        best[:, amount] = best[:, amount - 1]
        n_usable = int(np.searchsorted(lengths, amount, side="right"))
        if not n_usable:
            continue
        with_piece = values[:, :n_usable] + best[:, amount - lengths[:n_usable]]  # (n_lists, n_usable)
        piece = with_piece.argmax(axis=1)
        is_better = with_piece[every, piece] > best[:, amount] + _CLOSE
        best[is_better, amount], last[is_better, amount] = with_piece[every, piece][is_better], piece[is_better]
    at = np.arange(WHOLE + 1) // step
    return best[:, at], last[:, at]


def _pieces_of(sizes: Ints, last: Ints) -> Floats:
    """(n_sizes,) pieces of the best way to cut a whole card."""
    pieces, left = np.zeros(len(sizes)), WHOLE
    while left > 0:
        if last[left] < 0:
            left -= 1
        else:
            pieces[last[left]] += 1
            left -= int(sizes[last[left]])
    return pieces


# How much room nodes have for pods of each shape of a mix.
#
#     pods_m(node) = min(floor(sum over cards of floor(free / milli_m) / count_m), cores free / cores_m,
#                        memory free / memory_m);   0 if m does not fit at all
#     room_m(node) = pods_m(node) * count_m * milli_m        thousandths of cards
#
# Cores and memory count in fractions: half a pod's worth of cores that is left over is worth something to other shapes.
# Only cards of a model that m takes count.


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
