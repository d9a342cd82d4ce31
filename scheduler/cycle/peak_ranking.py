"""What the predicted peak says of nodes while one like pod after the other lands: predicted_peak_ranking of
scorer/scores/predicted_peak_score.py, kept up to date instead of made again.

A pod changes the predicted share of its node, by the same amount each time (cluster/predicted/growth_columns.py). The
exact cost and the peak of memory are looked at ahead (cluster/predicted/load_tables.py), of the few nodes where they
matter.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.power_growth import BEST_NODES, MEMORY_LIMIT
from cluster.tracking import TrackedCluster
from forecast.resources import MEMORY
from kube.objects.objects import PodInfo
from placement.policies.policy import Policy
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.energy import best_nodes

_MARGIN: Final = 1e-3
"""Shares of memory: nodes so near the limit are looked at exactly."""

_ENDLESS: Final = 2**31 - 1

_AHEAD: Final = 24
"""Nodes beyond the short list whose exact cost is looked at together with the next one's."""

_POOL: Final = 128
"""Nodes of the lowest share that are kept in order."""


class ShortList:
    """The nodes of the lowest predicted share, kept in order while one node after the other takes a pod.

    Of these the exact cost decides (scorer/scores/predicted_peak_score.py). A pod changes the share of one node, so the
    nodes beyond a pool of the lowest hundred need not be looked at until the pool has run dry.

    share : (n_nodes,) inf = not to be chosen; kept up to date here
    """

    def __init__(self, share: Floats, length: int) -> None:
        self.share, self._length = share, length
        self._pool: list[tuple[float, int]] = []
        self._beyond = (-np.inf, -1)  # from here on nodes are not in the pool

    def best(self) -> list[tuple[float, int]]:
        """Shares and positions, the lowest share first; of equal shares the first position."""
        if len(self._pool) < self._length and self._beyond[0] < np.inf:
            self._fill()
        return self._pool[: self._length]

    def following(self, n_nodes: int) -> list[int]:
        """Return positions of the next `n_nodes` after the best, as far as they are at hand."""
        return [position for _, position in self._pool[self._length : self._length + n_nodes]]

    def move(self, position: int, share: float) -> None:
        """A node has another share; inf = it is not to be chosen any more."""
        before = (float(self.share[position]), position)
        self.share[position] = share
        at = bisect_left(self._pool, before)
        if at < len(self._pool) and self._pool[at] == before:
            del self._pool[at]
        if (share, position) < self._beyond and share < np.inf:
            insort(self._pool, (share, position))

    def _fill(self) -> None:
        known = np.isfinite(self.share)
        few = best_nodes(self.share, known, _POOL)
        self._pool = sorted(zip(self.share[few].tolist(), few.tolist(), strict=True))
        # All that is lower than the last of the pool is in it.
        self._beyond = self._pool[-1] if len(few) < int(known.sum()) else (np.inf, -1)
        if self._beyond[0] < np.inf:
            last = self._pool[-1]
            self._beyond = (last[0], last[1] + 1)


class PeakRanking:
    """Implements Ranking. For nodes of known capacity, positions in `rows`; needs a model."""

    def __init__(
        self,
        pod: PodInfo,
        cluster: TrackedCluster,
        rows: Ints,
        policy: Policy,
        coming: Callable[[], Iterable[PodInfo]] = tuple,
    ) -> None:
        """coming: pods that are probably placed next"""
        predicted = cluster.predicted
        assert predicted is not None
        self._rows, self._load, self._profile = rows, predicted.load, cluster.profile(pod)
        weights = policy.scoring.resource_weights
        self._column = self._load.column(self._profile, weights, lambda: _known_profiles(cluster, coming()))
        self._dot, self._rest = self._column.dot[rows], self._column.rest[rows]
        self._own = self._load.own_growth(self._column, self._profile)[rows]
        self._ahead = self._load.ahead(self._profile, weights)
        share = self._column.share(self._dot, self._rest)
        self._list = ShortList(share, BEST_NODES)
        self._cost: dict[int, float] = {}  # exact, of those on the short list
        self._by_cost: list[tuple[float, int]] = []  # the same, sorted
        self._looked_at: dict[int, float] = {}  # exact costs of these and of nodes that may come onto it
        self._landed: dict[int, int] = {}
        self._of_memory = self._load.peak_of_pod(self._profile, MEMORY) * self._load.per_capacity(rows)[:, MEMORY]
        self._memory_until = self._pods_within_memory()
        self.values: Floats = MAX_NODE_SCORE * (1.0 - np.maximum(share, 0.0))

    def short_list(self) -> tuple[list[int], list[float], list[int]]:
        """Points go by the exact cost: the highest to the lowest, to equals alike."""
        nearest = self._list.best()
        cost, by_cost = self._cost, self._by_cost
        entered = [at for _, at in nearest if at not in cost]
        if entered:
            self._look_ahead(entered)
            for at in entered:
                one = cost[at] = self._looked_at[at]
                insort(by_cost, (one, at))
        values = [MAX_NODE_SCORE * (1.0 - (share if share > 0.0 else 0.0)) for share, _ in nearest]
        last = None
        for place, (one, _) in enumerate(by_cost):
            if one == last:
                values[place] = values[place - 1]
            last = one
        return [at for _, at in by_cost], values, entered

    def _look_ahead(self, entered: list[int]) -> None:
        """Have the exact costs of these nodes and of those that come next: many at once cost a third each."""
        looked_at = self._looked_at
        if all(at in looked_at for at in entered):
            return
        wanted = [at for at in (*entered, *self._list.following(_AHEAD)) if at not in looked_at]
        costs = self._ahead.power_growth(self._rows[wanted].tolist())
        looked_at.update(zip(wanted, costs.tolist(), strict=True))

    def land(self, at: int) -> float | None:
        """None = memory is predicted to run out with another one."""
        row = int(self._rows[at])
        landed = self._landed[at] = self._landed.get(at, 0) + 1
        self._ahead.land(row)
        self._leave(at)
        dot = self._dot[at] = self._dot[at] + self._own[at]
        if landed >= self._memory_until[at] and not self._has_memory(at, row, landed):
            self.drop(at)
            return None
        share = self._column.share_of(dot, self._rest[at])
        self._list.move(at, share)
        return MAX_NODE_SCORE * (1.0 - (share if share > 0.0 else 0.0))

    def drop(self, at: int) -> None:
        """The node can take no more."""
        self._leave(at)
        self._list.move(at, np.inf)

    def _leave(self, at: int) -> None:
        """The short list, if it is on it; where it stays its cost is another."""
        self._looked_at.pop(at, None)
        cost = self._cost.pop(at, None)
        if cost is not None:
            del self._by_cost[bisect_left(self._by_cost, (cost, at))]

    def _pods_within_memory(self) -> Ints:
        """(n_nodes,) a node with fewer pods than this surely takes another; the sum of peaks is an upper limit."""
        if (self._load.peak_with(self._profile, MEMORY, self._rows) > MEMORY_LIMIT).any():
            return np.full(len(self._rows), _ENDLESS)  # they would have been passed over if there were others
        left = MEMORY_LIMIT - _MARGIN - self._load.highest(MEMORY, self._rows).astype(np.float64)
        pods = np.floor(left / np.where(self._of_memory > 0, self._of_memory, np.inf))
        return np.where(self._of_memory > 0, np.maximum(pods, 1.0), _ENDLESS).astype(np.int64)

    def _has_memory(self, at: int, row: int, landed: int) -> bool:
        highest = self._ahead.highest(row, MEMORY)
        if highest + self._of_memory[at] > MEMORY_LIMIT:
            return False
        more = (MEMORY_LIMIT - _MARGIN - float(highest)) // float(self._of_memory[at])
        self._memory_until[at] = landed + max(int(more), 1)
        return True


def _known_profiles(cluster: TrackedCluster, pods: Iterable[PodInfo]) -> Iterator[int]:
    """Of the pods, as far as there are profiles for them already."""
    for pod in pods:
        if (profile := cluster.known_profile(pod)) is not None:
            yield profile
