"""Which node kube-scheduler will probably take: its own scores, as far as they can be told, and our points on top.

An extender is not told. Charging the node that we rank first would be wrong whenever kube-scheduler's scores decide
otherwise, and every pod that follows before the binding is seen would be advised on a cluster that does not exist.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from extender.filters.filter import ClusterView
from extender.scores.catalogue import STANDARD_SCORES
from forecast.arrays import Ints
from scorer.cluster.objects import PodInfo
from scorer.scores.balanced_allocation import balanced_allocation_score
from scorer.scores.least_allocated import least_allocated_score

__all__ = ["POINT_VALUE", "default_scores", "expected_choice"]

POINT_VALUE: Final = 10
"""What one point is worth beside kube-scheduler's scores, at weight 1: MaxNodeScore / MaxExtenderPriority."""


def default_scores(pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
    """Sum of kube-scheduler's scores with their default weights: (n_nodes,), 0 to 1,200.

    rows : (n_nodes,) nodes that passed all filters
    """
    state = view.state
    allocatable = state.allocatable[rows, :2]  # cpu and memory come first
    total = least_allocated_score(state.requested_nonzero[rows], np.array(pod.nonzero_requests), allocatable)
    total = total + balanced_allocation_score(state.requested[rows, :2], state.request_vector(pod)[:2], allocatable)
    for score, weight in STANDARD_SCORES:
        total = total + weight * score.score(pod, view, rows)
    return np.asarray(total)


def expected_choice(pod: PodInfo, view: ClusterView, rows: Ints, points: Ints, weight: int) -> int:
    """Position of the node that kube-scheduler will probably take; among equals it draws lots, here the first is named.

    rows, points : (n_nodes,), at least one; weight: of the extender in the KubeSchedulerConfiguration
    """
    return int(np.argmax(default_scores(pod, view, rows) + POINT_VALUE * weight * points))
