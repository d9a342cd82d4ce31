"""The sum of kube-scheduler's scores with their default weights: 0 to 1,200."""

from __future__ import annotations

from typing import Final

import numpy as np

from extender.filters.filter import ClusterView
from extender.scores.catalogue import STANDARD_SCORES
from forecast.arrays import Ints
from scorer.cluster.columns import nonzero_units
from scorer.cluster.objects import PodInfo
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import least_allocated_score

__all__ = ["SPREAD_WEIGHT", "allocation_scores", "default_scores", "scores_beside_allocation"]

_SPREAD: Final = "PodTopologySpread"

SPREAD_WEIGHT: Final = next(weight for score, weight in STANDARD_SCORES if score.name == _SPREAD)


def default_scores(pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
    """(n_nodes,) of the nodes that passed all filters."""
    return np.asarray(allocation_scores(pod, view, rows) + sum(scores_beside_allocation(pod, view, rows)))


def allocation_scores(pod: PodInfo, view: ClusterView, rows: Ints, *, landed: int = 0) -> Ints:
    """(n_nodes,) those of requests. landed: as if so many like pods were there beside those that are."""
    state = view.state
    nonzero, requests = np.array(pod.nonzero_requests), state.request_vector(pod)[:2]  # cpu and memory come first
    at = _in_place(rows)
    allocatable = state.allocatable[at, :2]
    counted = np.array(nonzero_units(pod)) / (1000.0, 1.0)  # in whole units, as the columns count pods that sit
    least = least_allocated_score(state.requested_nonzero[at] + landed * counted, nonzero, allocatable)
    return least + balanced_allocation_score(state.requested[at, :2] + landed * requests, requests, allocatable)


def scores_beside_allocation(pod: PodInfo, view: ClusterView, rows: Ints, *, spread: bool = True) -> list[Ints]:
    """(n_nodes,) each of the others, weighted and normalised over these nodes. spread: topology spread, too."""
    return [
        weight * score.score(pod, view, rows) for score, weight in STANDARD_SCORES if spread or score.name != _SPREAD
    ]


def _in_place(rows: Ints) -> Ints | slice:
    """Rows in one piece, which are most of the calls, as a slice: slices are not copied."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows) and bool((rows[1:] > rows[:-1]).all()):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
