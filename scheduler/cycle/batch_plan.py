"""Nodes for like pods, one after the other, from tables that are read once: exactly those that each pod would be given
if it were placed by itself on tables that know of the pods before it.

A pod changes the node it lands on and nothing else that counts:

    what filters say     but for room, nothing (`ignores_like_pods`); room is counted down
    requested shares     by the number of pods on a node (AllocationLevels)
    predicted peak       peak_ranking.py, without a forecast PlainRanking of placing.py
    topology spread      by kinds of nodes (placement/scores/pod_topology_spread.py)
    all other scores     as they are, until a node is full: what is normalised over the nodes is then made again
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, Protocol

import numpy as np

from base.arrays import Bools, Floats, Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter
from placement.pods_that_fit import room_for
from placement.policies.policy import Policy
from placement.scores.default_scores import (
    allocation_scores,
    are_allocation_scores_kept,
    kept_allocation_scores,
    parts_beside_allocation,
)
from placement.scores.node_score import NodeScore
from placement.scores.plugin_weights import FIT, SPREAD, PluginWeights
from placement.scores.pod_topology_spread import SoftSpread, soft_constraints
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.cycle.decisions import NodeChoice
from scheduler.cycle.node_totals import factor_of_ours, further_parts
from scheduler.cycle.ranked_by_kind import BestFirst, RankedByKind

_FIRST: Final = 128
"""Nodes looked at when a first one gets to another number of pods; four times as many the next time."""


class AllocationLevels:
    """kube-scheduler's scores of requests once one, two, ... pods of a batch have landed on a node.

    They are computed for many nodes at once, which costs little more than for one; but not for all nodes while only few
    are near enough to the best to get there. Of a size of pods that was placed lately the scores of all nodes are kept,
    and only those of nodes that changed since are computed. Nodes are positions in `rows`.

    initial : (n_nodes,) 0..100, without any pod of the batch
    """

    def __init__(self, pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights) -> None:
        self._pod, self._view, self._rows, self._weights = pod, view, rows, weights
        self._is_known_size = are_allocation_scores_kept(pod, view, weights)
        self.initial: Ints = kept_allocation_scores(pod, view, weights)[rows]
        self._likely = BestFirst(np.zeros(len(rows)), np.arange(len(rows)))
        self._levels: dict[int, tuple[Ints, Bools, list[int]]] = {}  # scores, where they are known, how many next

    def expect(self, order: BestFirst) -> None:
        """order: positions, those that will get pods soonest first."""
        self._likely = order

    def at(self, landed: int, position: int) -> int:
        """Return the score of a node with `landed` pods, 1 or more."""
        level = self._levels.get(landed)
        if level is None:
            level = self._levels[landed] = self._new_level(landed)
        scores, known, size = level
        if not known[position]:
            likely = self._likely.first(int(np.count_nonzero(known)) + size[0])
            next_ones = likely[~known[likely]][: size[0]]
            size[0] *= 4
            self._work_out(np.append(next_ones, position), landed, scores, known)
        return int(scores[position])

    def _new_level(self, landed: int) -> tuple[Ints, Bools, list[int]]:
        n = len(self._rows)
        if landed == 1 and self._is_known_size:
            scores = kept_allocation_scores(self._pod, self._view, self._weights, landed=landed)[self._rows]
            return scores, np.ones(n, dtype=bool), [0]
        return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), [_FIRST]

    def _work_out(self, positions: Ints, landed: int, scores: Ints, known: Bools) -> None:
        rows = self._rows[positions]
        scores[positions] = allocation_scores(self._pod, self._view, rows, self._weights, landed=landed)
        known[positions] = True


class Ranking(Protocol):
    """What our own scores say of nodes, as scorer.scoring.PodScores.ranking does, while pods land.

    values : (n_nodes,) at the beginning
    """

    values: Floats

    def short_list(self) -> tuple[list[int], list[float], list[int]]:
        """Positions of the nodes that are judged exactly, their values, and which of them are new on the list. A node
        leaves it only by what happens to itself."""

    def land(self, at: int) -> float | None:
        """A pod has landed: the node's value as if it were not on the short list; None = it takes no more."""

    def drop(self, at: int) -> None:
        """The node takes no more."""


class BatchPlan:
    """For nodes that pass all filters: positions in `rows`, ascending, inside.

    What is read of one node at a time, again and again, are plain floats: an array of one costs as much as one of
    thousands.
    """

    def __init__(
        self,
        pod: PodInfo,
        view: ClusterView,
        filters: Sequence[Filter],
        rows: Ints,
        ranking: Ranking,
        policy: Policy,
        score_per_point: float,
        times: CycleTimes | None = None,
        further: Sequence[tuple[NodeScore, int]] = (),
    ) -> None:
        """
        times   : where scores are timed, those of requests together; None = nowhere
        further : scores of the profile that ignore like pods, with their weights
        """
        self._pod, self._view, self._rows, self._policy = pod, view, rows, policy
        self._times = times or CycleTimes()
        self._weights, self._ranking, self._further = policy.plugin_weights, ranking, further
        self._factor = factor_of_ours(policy, score_per_point)
        self._spread_weight = int(self._weights[SPREAD])
        self._landed: dict[int, int] = {}
        self._out: set[int] = set()
        self._room = room_for(pod, view, filters, rows)
        # total = standard + spread + ours
        with self._times.of(Point.SCORE, FIT):
            self._allocation = AllocationLevels(pod, view, rows, self._weights)
        self._others_differ = False
        self._others = self._scores_of_others(np.arange(len(rows)))
        self._spread: SoftSpread | None = None
        if self._spread_weight and soft_constraints(pod):
            with self._times.of(Point.SCORE, SPREAD):
                self._spread = SoftSpread(pod, view, rows)
        kind = np.zeros(len(rows), dtype=np.int64) if self._spread is None else self._spread.kind
        self._standard: Floats = (self._allocation.initial + self._others).astype(np.float64)
        self._ours: Floats = self._factor * ranking.values
        self._kind = kind
        self._listed: dict[int, tuple[float, int]] = {}  # on the short list: the standard scores, and the kind
        self._ranked = self._rank()

    def place(self) -> NodeChoice | None:
        """The best node for the next pod, which is counted there.

        None = the tables have to be read again: no node is left that has room, and memory by the forecast.
        """
        (highest, best), second = self._best_two()
        if best < 0:
            return None
        if best not in self._listed:  # the next of its kind has not been compared
            self._ranked.take(best)
            second = max(second, self._best_two()[0], key=lambda one: (one[0], -one[1]))
        n_nodes = len(self._rows) - len(self._out)
        runner_up = None if second[1] < 0 else (int(self._rows[second[1]]), second[0])
        self._land(best)
        return NodeChoice(self._policy, int(self._rows[best]), n_nodes, highest if n_nodes > 1 else None, runner_up)

    def _best_two(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """Sums and positions of the best node and of the next, of equal ones the first position; -1 = there is none.

        The next one may be missed if the best is on no short list and both are of one kind.
        """
        best = second = (-np.inf, -1)
        spread = [0] if self._spread is None else [self._spread_weight * score for score in self._spread.scores()]
        listed, values, entered = self._ranking.short_list()
        known, factor = self._listed, self._factor
        for at in entered:
            known[at] = self._standard.item(at), self._kind.item(at)
            self._ranked.take(at)
        for at, value in zip(listed, values, strict=True):
            standard, kind = known[at]
            total = (standard + spread[kind]) + factor * value
            if total > best[0] or (total == best[0] and at < best[1]):
                best, second = (total, at), best
            elif total > second[0] or (total == second[0] and at < second[1]):
                second = total, at
        for ranked, of_spread in zip(self._ranked.best(), spread, strict=False):
            if ranked is not None:
                _, at, of_node, ours = ranked
                total = (of_node + of_spread) + ours
                if total > best[0] or (total == best[0] and at < best[1]):
                    best, second = (total, at), best
                elif total > second[0] or (total == second[0] and at < second[1]):
                    second = total, at
        return best, second

    def _land(self, at: int) -> None:
        landed = self._landed[at] = self._landed.get(at, 0) + 1
        self._listed.pop(at, None)
        kind: int = self._kind.item(at)
        if self._spread is not None:
            kind = self._kind[at] = self._spread.land(kind)
        value = self._ranking.land(at)
        if value is None or landed >= self._room[at]:
            self._drop(at)
            return
        standard = self._standard[at] = float(self._allocation.at(landed, at) + self._others[at])
        ours = self._ours[at] = self._factor * value
        self._ranked.put(at, kind, standard, ours)

    def _drop(self, at: int) -> None:
        """The node can take no more."""
        self._out.add(at)
        self._ranking.drop(at)
        self._ranked.take(at)
        if self._spread is not None:
            self._spread.drop(self._kind.item(at))
        if self._others_differ and len(self._out) < len(self._rows):
            self._normalise_again()

    def _normalise_again(self) -> None:
        """Over the nodes that are left."""
        left = np.setdiff1d(np.arange(len(self._rows)), list(self._out), assume_unique=True)
        self._others[left] = self._scores_of_others(left)
        standard = self._standard
        standard[left] = self._allocation.initial[left] + self._others[left]
        for at, landed in self._landed.items():
            if at not in self._out:
                standard[at] = self._allocation.at(landed, at) + self._others[at]
        self._listed = {at: (standard.item(at), kind) for at, (_, kind) in self._listed.items()}
        self._ranked = self._rank()

    def _scores_of_others(self, at: Ints) -> Ints:
        """(n_nodes,) of the nodes at these positions: all whole numbers of the sum but requests and topology spread."""
        total, rows = np.zeros(len(at), dtype=np.int64), self._rows[at]
        parts = parts_beside_allocation(self._pod, self._view, rows, self._weights, spread=False)
        further = further_parts(self._pod, self._view, rows, self._further)
        for part in self._times.each(chain(parts, further)):
            self._others_differ |= bool(np.ptp(part.points))
            total = np.asarray(total + part.points, dtype=np.int64)
        return total

    def _rank(self) -> RankedByKind:
        """All nodes that are in; those on the short list are judged there."""
        # In copies: a node that changes is put there again, and must be found where it was until then.
        ranked = RankedByKind(self._standard.copy(), self._ours.copy(), self._kind, int(self._kind.max()) + 1)
        for at in (*self._out, *self._listed):
            ranked.take(at)
        self._allocation.expect(ranked.order)
        return ranked
