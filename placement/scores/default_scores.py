"""The sum of kube-scheduler's scores, by their default weights 0 to 1,200 or by those of a policy, and the node that
kube-scheduler will probably take.

An extender does not learn the choice. Charging the node that we rank first would be wrong whenever kube-scheduler's
scores decide otherwise, and every pod that follows before the binding is seen would be advised on a cluster that does
not exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.tables.columns import nonzero_units
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.scores.plugin_weights import (
    BALANCED,
    FIT,
    PLUGIN_WEIGHTS,
    SPREAD,
    STANDARD_SCORES,
    PluginWeights,
    ScorePart,
)
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import least_allocated_score

POINT_VALUE: Final = 10
"""What one point is worth in kube-scheduler's scores, at weight 1: MaxNodeScore / MaxExtenderPriority."""


def default_scores(pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
    """(n_nodes,) of the nodes that passed all filters, by the default weights."""
    return np.asarray(sum((part.points for part in default_parts(pod, view, rows, PLUGIN_WEIGHTS)), start=_zeros(rows)))


def default_parts(pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights) -> Iterator[ScorePart]:
    """Of each score with a weight above 0; whole numbers."""
    yield from _allocation_parts(pod, view, rows, weights, landed=0)
    yield from parts_beside_allocation(pod, view, rows, weights)


def allocation_scores(pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights, *, landed: int = 0) -> Ints:
    """(n_nodes,) sum of those of requests. landed: as if so many like pods were there beside those that are."""
    parts = _allocation_parts(pod, view, rows, weights, landed=landed)
    return np.asarray(sum((part.points for part in parts), start=_zeros(rows)))


def kept_allocation_scores(pod: PodInfo, view: ClusterView, weights: PluginWeights, *, landed: int = 0) -> Ints:
    """(n_rows,) the same of all rows, to be read only, from a column that is kept for pods that request the same."""
    every = np.arange(view.n_rows)
    return view.index.kept.column(
        _allocation_key(pod, view, weights, landed),
        lambda rows: allocation_scores(pod, view, every[rows], weights, landed=landed),
    )


def are_allocation_scores_kept(pod: PodInfo, view: ClusterView, weights: PluginWeights) -> bool:
    """Whether pods that request the same were scored lately."""
    return _allocation_key(pod, view, weights, 0) in view.index.kept


def _allocation_key(pod: PodInfo, view: ClusterView, weights: PluginWeights, landed: int) -> Hashable:
    """All that `allocation_scores` depend on, but for the nodes."""
    requests = tuple(view.state.request_vector(pod)[:2].tolist())
    of_change = view.state.version.scores_change_of_balance
    return "allocation", requests, pod.nonzero_requests, int(weights[FIT]), int(weights[BALANCED]), landed, of_change


def parts_beside_allocation(
    pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights, *, spread: bool = True
) -> Iterator[ScorePart]:
    """Each of the others, normalised over these nodes. spread: topology spread, too."""
    for score, _ in STANDARD_SCORES:
        weight = weights[score.name]
        if weight and (spread or score.name != SPREAD):
            yield ScorePart(score.name, weight, int(weight) * score.score(pod, view, rows))


def _allocation_parts(
    pod: PodInfo, view: ClusterView, rows: Ints, weights: PluginWeights, *, landed: int
) -> Iterator[ScorePart]:
    state = view.state
    requests = state.request_vector(pod)[:2]  # cpu and memory come first
    at = _in_place(rows)
    allocatable = state.allocatable[at, :2]
    if fit := int(weights[FIT]):
        nonzero = np.array(pod.nonzero_requests)
        counted = np.array(nonzero_units(pod)) / (1000.0, 1.0)  # in whole units, as the columns count pods that sit
        least = least_allocated_score(state.requested_nonzero[at] + landed * counted, nonzero, allocatable)
        yield ScorePart(FIT, fit, fit * least)
    if balance := int(weights[BALANCED]):
        balanced = balanced_allocation_score(
            state.requested[at, :2] + landed * requests,
            requests,
            allocatable,
            of_change=state.version.scores_change_of_balance,
        )
        yield ScorePart(BALANCED, balance, balance * balanced)


def _zeros(rows: Ints) -> Ints:
    return np.zeros(len(rows), dtype=np.int64)


def _in_place(rows: Ints) -> Ints | slice:
    """Rows in one piece, which are most of the calls, as a slice: slices are not copied."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows) and bool((rows[1:] > rows[:-1]).all()):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def expected_choice(pod: PodInfo, view: ClusterView, rows: Ints, points: Ints, weight: int) -> int:
    """Position of the node that kube-scheduler will probably take; among equals it draws lots, here the first is named.

    rows, points : (n_nodes,), at least one; weight: of the extender in the KubeSchedulerConfiguration
    """
    return int(np.argmax(default_scores(pod, view, rows) + POINT_VALUE * weight * points))
