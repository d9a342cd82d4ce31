"""What a node is worth for a pod: kube-scheduler's scores and the predicted peak on top, as with our extender.

    total = sum of kube-scheduler's scores, by their default weights        0..1,200
          + 10 * ranking / score_per_point                                  10 for each point of the extender

so that a cluster may go from kube-scheduler with the extender to our own loops and back without another trade-off.
Points of the extender are whole numbers around the median of a request; here they are neither rounded nor shifted.
"""

from __future__ import annotations

import numpy as np

from extender.expected_choice import POINT_VALUE
from extender.filters.filter import ClusterView
from extender.policies.policy import Policy
from extender.scores.default_scores import default_scores
from forecast.arrays import Bools, Floats, Ints
from forecast.resources import MEMORY
from scorer.cluster.objects import PodInfo
from scorer.degradation import Level
from scorer.opt_out import opts_out
from scorer.scores.predicted_peak import MEMORY_LIMIT
from scorer.scoring import score_pod

__all__ = ["candidates", "lost_ranking", "node_totals", "total_of"]


def candidates(passes: Bools, pod: PodInfo, view: ClusterView, level: Level) -> Ints:
    """(n_nodes,) rows that pass; those whose memory is predicted to run out only if there are no others."""
    rows = np.flatnonzero(passes)
    predicted = view.cluster.predicted
    if predicted is None or level >= Level.REQUESTS or opts_out(pod):
        return rows
    load = predicted.load
    inside = rows < load.n_nodes
    peak = load.peak_with(view.cluster.profile(pod), MEMORY, rows[inside])
    safe = ~inside
    safe[inside] = ~(peak > MEMORY_LIMIT)
    return rows[safe] if safe.any() else rows


def lost_ranking(pod: PodInfo, view: ClusterView, rows: Ints, policy: Policy, score_per_point: float) -> Floats:
    """(n_nodes,) what nodes lose because their devices are kept for others."""
    if policy.avoided is None or opts_out(pod):
        return np.zeros(len(rows))
    reserved = policy.avoided.reserved_for_others(pod, view)[rows]
    return np.where(reserved, policy.avoided_points * score_per_point, 0.0)


def total_of(standard: Ints, ranking: Floats, lost: Floats, score_per_point: float) -> Floats:
    """Any shape."""
    return np.asarray(standard + POINT_VALUE / score_per_point * (ranking - lost))


def node_totals(
    pod: PodInfo, view: ClusterView, rows: Ints, policy: Policy, level: Level, score_per_point: float
) -> Floats:
    """(n_nodes,) of the rows, higher is better."""
    level = Level.NEUTRAL if opts_out(pod) else level
    ranking = score_pod(view.cluster, pod, rows, policy.scoring, level).ranking
    lost = lost_ranking(pod, view, rows, policy, score_per_point)
    return total_of(default_scores(pod, view, rows), ranking, lost, score_per_point)
