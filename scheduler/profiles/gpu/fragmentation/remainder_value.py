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
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates
from scheduler.profiles.gpu.fragmentation.shapes import WHOLE, PodShape, ShapeMix

_MOST_WAYS: Final = 500
_CLOSE: Final = 1e-9
_PRICES: Final = np.concatenate(([0.0], np.geomspace(0.05, 10.0, 19)))
"""Of the cores that a card's worth of pods asks for, in cards: beyond the last, only cores count."""


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

    def lost_by_card(self, shape: PodShape, nodes: NodeStates) -> Floats:
        """(n_nodes, most_devices) the same for a pod of part of that card; inf = too little is left of it."""
        row, card = np.nonzero(nodes.free_milli >= shape.milli)
        lost = np.full(nodes.free_milli.shape, np.inf)
        lost[row, card] = self.lost_by_cards(shape, nodes, row, card)
        return lost

    def lost_by_cards(self, shape: PodShape, nodes: NodeStates, row: Ints, card: Ints) -> Floats:
        """(n_tried,) the same for these cards of these nodes, which have enough left. row, card: (n_tried,)"""
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
