"""What a node is worth for a pod: kube-scheduler's scores and the predicted peak on top, as with our extender.

    total = sum of kube-scheduler's scores, by their default weights        0..1,200
          + 10 * ranking / score_per_point                                  10 for each point of the extender

so that a cluster may go from kube-scheduler with the extender to our own loops and back without another trade-off.
Points of the extender are whole numbers around the median of a request; here they are neither rounded nor shifted.
A policy may give every score of the sum another weight (placement/scores/plugin_weights.py). All parts but ours are
whole numbers, so that the order in which they are added does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.degradation import Level
from cluster.predicted.power_growth import MEMORY_LIMIT
from forecast.resources import MEMORY
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.policies.policy import Policy
from placement.scores.default_scores import POINT_VALUE, default_parts
from placement.scores.node_score import NodeScore
from placement.scores.plugin_weights import OURS, ScorePart
from scheduler.cycle.cycle_times import CycleTimes, Point
from scorer.scoring import ranking_of
from scorer.scoring_policy import opts_out


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


def factor_of_ours(policy: Policy, score_per_point: float) -> float:
    """What one point of the ranking, 0..100, adds to the sum."""
    return policy.plugin_weights[OURS] * POINT_VALUE / score_per_point


def node_parts(
    pod: PodInfo,
    view: ClusterView,
    rows: Ints,
    policy: Policy,
    level: Level,
    score_per_point: float,
    further: Iterable[ScorePart] = (),
    times: CycleTimes | None = None,
) -> Sequence[ScorePart]:
    """What each score with a weight above 0 adds to the sums of the rows; ours is the last.

    further : whole numbers, of Score plugins of a profile
    times   : where each score is timed; None = nowhere
    """
    times = times or CycleTimes()
    parts = [*times.each(default_parts(pod, view, rows, policy.plugin_weights)), *times.each(further)]
    if weight := policy.plugin_weights[OURS]:
        level = Level.NEUTRAL if opts_out(pod) else level
        with times.of(Point.SCORE, OURS):
            ranking = ranking_of(view.cluster, pod, rows, policy.scoring, level)
        parts.append(ScorePart(OURS, weight, factor_of_ours(policy, score_per_point) * ranking))
    return parts


def further_parts(
    pod: PodInfo, view: ClusterView, rows: Ints, scores: Iterable[tuple[NodeScore, int]]
) -> Iterator[ScorePart]:
    """What scores of a profile add to the sums of the rows. scores: with their weights"""
    return (ScorePart(score.name, weight, weight * score.score(pod, view, rows)) for score, weight in scores)


def sum_of(parts: Sequence[ScorePart], n_nodes: int) -> Floats:
    """(n_nodes,) higher is better."""
    return np.asarray(reduce(add, (part.points for part in parts), np.zeros(n_nodes, dtype=np.int64)), dtype=np.float64)
