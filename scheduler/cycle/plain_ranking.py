"""What there is to say of nodes without a forecast while one like pod after the other lands: those in use to the last
bit are avoided, as scorer/scoring.py does; of the others nothing is known."""

from __future__ import annotations

import numpy as np

from forecast.arrays import Floats, Ints
from kube.objects.objects import PodInfo
from scorer.scores.capacity import NEUTRAL_SCORE, limited
from scorer.scoring import FULL, FULL_PENALTY
from scorer.tracking import TrackedCluster

_ENDLESS = 2**31 - 1


class PlainRanking:
    """Implements Ranking. Positions in `rows`."""

    def __init__(self, pod: PodInfo, cluster: TrackedCluster, rows: Ints, *, is_neutral: bool) -> None:
        """is_neutral: not even what is measured counts"""
        self._landed: dict[int, int] = {}
        self._full_from = np.full(len(rows), _ENDLESS, dtype=np.int64)
        if not is_neutral:
            self._full_from = _full_from(pod, cluster, rows)
        self.values: Floats = np.where(self._full_from > 0, NEUTRAL_SCORE, NEUTRAL_SCORE - FULL_PENALTY)

    def short_list(self) -> tuple[list[int], list[float], list[int]]:
        """There is none."""
        return [], [], []

    def land(self, at: int) -> float | None:
        """It may be full now."""
        landed = self._landed[at] = self._landed.get(at, 0) + 1
        return NEUTRAL_SCORE if landed < self._full_from[at] else NEUTRAL_SCORE - FULL_PENALTY

    def drop(self, at: int) -> None:
        """Nothing to forget."""


def _full_from(pod: PodInfo, cluster: TrackedCluster, rows: Ints) -> Ints:
    """(n_nodes,) with so many more pods like this one a node is in use to the last bit; never where nobody measures."""
    capacity = cluster.capacity[rows]
    limits = limited(capacity) & ~cluster.capacity_assumed[rows]
    share = np.where(limits, cluster.virtual_available()[rows] / np.where(limits, capacity, 1.0), np.nan)
    left = share - (1.0 - FULL)  # (n_nodes, n_resources) NaN = not known
    of_pod = np.nan_to_num(cluster.expected_use(pod).amount) / np.where(limits, capacity, 1.0)
    pods = np.where(left <= 0, 0.0, np.ceil(left / np.where(of_pod > 0, of_pod, np.nan)))
    endless = np.where(np.isnan(pods), _ENDLESS, np.minimum(pods, _ENDLESS))
    return np.asarray(endless.min(axis=1).astype(np.int64))
