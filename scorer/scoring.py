"""Scores of one pod on every node, from the tables as they are, and which scores are the same for all nodes now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.degradation import Level, level_of_nodes
from cluster.live.virtual_request import VirtualRequest
from cluster.predicted.growth_columns import ResourceWeights
from cluster.predicted.power_growth import BEST_NODES, MEMORY_LIMIT
from cluster.predicted.unknown_capacity import NEUTRAL_SCORE, limited
from cluster.tracking import TrackedCluster
from forecast.resources import MEMORY, RESOURCES
from kube.objects.objects import PodInfo, QosClass
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.energy import best_nodes
from scorer.scores.predicted_peak_score import predicted_peak_ranking
from scorer.scores.score_catalogue import SCORES, combine, weighted_mean
from scorer.scores.score_columns import ClusterFigures, ScoredNodeColumns, ScoredPodColumns
from scorer.scoring_policy import ScoringPolicy

FULL = 1.0
"""Share of capacity in use now from which a node is avoided where nothing but requests decides. Passing over nodes from
0.95 on was worse than not looking at all, from 1.0 on it cost nothing (docs/understand/placement.md)."""

FULL_PENALTY = 20.0
"""Points of the ranking by which a full node is below the worst of the others, if no forecast decides."""


@dataclass(frozen=True, slots=True)
class PodScores:
    """Scores of one pod on some of the cluster's rows.

    rows    : (n_nodes,) rows scored
    total   : (n_nodes,) weighted mean, 0..100
    ranking : (n_nodes,) for sums with kube-scheduler's scores: the same with predicted peaks that are not cut at the
              ends of that range. Without a model the predicted peak alone is equal for all nodes, and full nodes come
              after all others
    parts   : each score that counts in the total, (n_nodes,)
    weights : of these, which differ from those asked for where there is no model
    ranked  : the same of the ranking, with the weights asked for
    ranked_weights : of these
    levels  : (n_nodes,) rung of the degradation ladder
    full    : (n_nodes,) avoided, since in use now to the last bit
    known   : (n_nodes,) its capacity is known, so that it can be judged
    out_of_memory : (n_nodes,) its memory is predicted to run out with the pod
    profile : of the pod, None without a model
    """

    rows: Ints
    total: Floats
    ranking: Floats
    parts: Mapping[str, Floats]
    weights: Mapping[str, float]
    ranked: Mapping[str, Floats]
    ranked_weights: Mapping[str, float]
    levels: Ints
    full: Bools
    known: Bools
    out_of_memory: Bools
    profile: int | None
    virtual_request: VirtualRequest | None


def weights_without_model(weights: Mapping[str, float]) -> dict[str, float]:
    """What counts in the total when there is no forecast: its weight goes to the default scores of kube-scheduler."""
    without = {name: weight for name, weight in weights.items() if name != "predicted_peak"}
    for name in ("least_allocated", "balanced_allocation"):
        without[name] = without.get(name, 0.0) + weights.get("predicted_peak", 0.0) / 2
    return without


def score_pod(
    cluster: TrackedCluster,
    pod: PodInfo,
    rows: Ints,
    policy: ScoringPolicy,
    level: Level,
) -> PodScores:
    """Score a pod on rows of the cluster.

    policy : what counts
    level : of nodes that are not measured (cluster.degradation.level_without_live)
    """
    at = _at(cluster, rows)
    levels = level_of_nodes(level, cluster.measured_nodes()[at])
    none: Bools = np.zeros(len(rows), dtype=bool)
    if level == Level.NEUTRAL:
        neutral = np.full(len(rows), NEUTRAL_SCORE)
        return PodScores(rows, neutral, neutral, {}, {}, {}, {}, levels, none, ~none, none, None, None)
    scores, weights = policy.scores, policy.weights
    used = dict(weights)
    profile = None
    if level == Level.REQUESTS or cluster.predicted is None:
        used = weights_without_model(weights)
    else:
        profile = cluster.profile(pod)
    request = cluster.expected_use(pod, profile)
    needed = frozenset().union(*(scores[name].reads for name, weight in used.items() if weight > 0))
    if profile is None:
        needed |= {"virtual_available", "capacity"}  # to find the nodes that are full
    columns = _node_columns(cluster, rows, at, profile, needed, policy.resource_weights)
    pod_columns = _pod_columns(cluster, pod, request)
    figures = _cluster_figures(cluster, pod, needed)
    parts = {name: scores[name].compute(columns, pod_columns, figures) for name, weight in used.items() if weight > 0}
    total = combine(parts, used)
    full = none
    if profile is None:
        limits = limited(columns.capacity) & ~cluster.capacity_assumed[at]
        left = np.where(limits, columns.virtual_available / np.where(limits, columns.capacity, 1.0), np.nan)
        full = np.asarray((left <= 1 - FULL).any(axis=1))
        if full.all():
            full = none  # there is no other to go to
        total = np.where(full, 0.0, total)
    ranking, ranked, ranked_weights = total, parts, used
    if profile is None and weights.get("predicted_peak", 0.0) > 0:
        # The caller adds this to scores of its own, which weigh requests: here nothing takes the forecast's place.
        neutral = np.full(len(rows), NEUTRAL_SCORE)
        ranked_weights = {name: weight for name, weight in weights.items() if weight > 0}
        ranked = {name: neutral if name == "predicted_peak" else parts[name] for name in ranked_weights}
        ranking = weighted_mean(ranked, ranked_weights)
        worst = np.minimum(ranking, ranking[~full].min(initial=MAX_NODE_SCORE)) - FULL_PENALTY
        ranking = np.where(full, worst, ranking)
    if profile is not None and "predicted_peak" in parts:
        uncut = _uncut(columns.predicted_share, columns.exact_cost, columns.out_of_memory)
        ranking = weighted_mean({**parts, "predicted_peak": uncut}, used)
    known = columns.known if profile is None else np.isfinite(columns.predicted_share)
    return PodScores(
        rows,
        total,
        ranking,
        parts,
        used,
        ranked,
        ranked_weights,
        levels,
        full,
        known,
        columns.out_of_memory,
        profile,
        request,
    )


def ranking_of(cluster: TrackedCluster, pod: PodInfo, rows: Ints, policy: ScoringPolicy, level: Level) -> Floats:
    """(n_nodes,) `score_pod(...).ranking`, without the rest where the predicted peak alone counts.

    Arguments as those of `score_pod`.
    """
    counted = {name for name, weight in policy.weights.items() if weight > 0}
    if counted != {"predicted_peak"} or level in (Level.NEUTRAL, Level.REQUESTS) or cluster.predicted is None:
        return score_pod(cluster, pod, rows, policy, level).ranking
    predicted = _predicted(cluster, rows, _at(cluster, rows), cluster.profile(pod), policy.resource_weights)
    return weighted_mean({"predicted_peak": _uncut(*predicted)}, policy.weights)


def _at(cluster: TrackedCluster, rows: Ints) -> Ints | slice:
    """All rows in order are most of the calls, and slices are not copied."""
    n = cluster.state.n_rows
    return slice(0, n) if len(rows) == n and np.array_equal(rows, np.arange(n)) else rows


def _uncut(share: Floats, exact: Floats, out_of_memory: Bools) -> Floats:
    """(n_nodes,) points of the predicted peak in any range, the median where there are none. See `_predicted`."""
    uncut = predicted_peak_ranking(share, exact, out_of_memory)
    known_share = np.isfinite(uncut)
    if known_share.all():
        return uncut
    return np.where(known_share, uncut, np.median(uncut[known_share]) if known_share.any() else NEUTRAL_SCORE)


def _node_columns(
    cluster: TrackedCluster,
    rows: Ints,
    at: Ints | slice,
    profile: int | None,
    needed: frozenset[str],
    weights: ResourceWeights | None,
) -> ScoredNodeColumns:
    """Columns of the rows; those that no score needs are left empty (NaN). at: the rows once more, to index with."""
    state, n = cluster.state, len(rows)

    def column(name: str, make: Callable[[], Floats], *shape: int) -> Floats:
        return make()[at] if name in needed else _empty(n, *shape)

    share, exact, out_of_memory = _predicted(cluster, rows, at, profile, weights)
    return ScoredNodeColumns(
        kinds=tuple(state.kinds),
        allocatable=column("allocatable", lambda: state.allocatable, len(state.kinds)),
        requested=column("requested", lambda: state.requested, len(state.kinds)),
        requested_nonzero=column("requested_nonzero", lambda: state.requested_nonzero, 2),
        capacity=column("capacity", lambda: cluster.capacity, len(RESOURCES)),
        virtual_available=column("virtual_available", cluster.virtual_available, len(RESOURCES)),
        qos_pods=column("qos_pods", lambda: state.qos_pods.astype(np.float64), len(QosClass)),
        qos_memory=column("qos_memory", cluster.qos_memory, len(QosClass)),
        predicted_share=share,
        exact_cost=exact,
        out_of_memory=out_of_memory,
        known=state.alive[at],
    )


@lru_cache(maxsize=64)
def _empty(*shape: int) -> Floats:
    """NaN everywhere, in no memory."""
    return np.broadcast_to(np.nan, shape)


def _predicted(
    cluster: TrackedCluster, rows: Ints, at: Ints | slice, profile: int | None, weights: ResourceWeights | None
) -> tuple[Floats, Floats, Bools]:
    """Mean share, exact cost of the short list, and where memory would run out: (n_nodes,) each."""
    n, predicted = len(rows), cluster.predicted
    share, exact = np.full(n, np.nan), np.full(n, np.nan)
    out_of_memory: Bools = np.zeros(n, dtype=bool)
    if profile is None or predicted is None:
        return share, exact, out_of_memory
    load = predicted.load
    inside: Ints | slice = slice(0, n)
    if load.n_nodes < cluster.state.n_rows:  # the last rows have neither a node nor pods yet
        inside = np.flatnonzero(rows < load.n_nodes)
        at = rows[inside]
    share[inside] = np.where(load.known[at], load.mean_share(profile, at, weights), np.nan)
    out_of_memory[inside] = load.peak_with(profile, MEMORY, at) > MEMORY_LIMIT
    known = np.isfinite(share)
    safe = known & ~out_of_memory
    few = best_nodes(share, safe if safe.any() else known, BEST_NODES)
    if len(few):
        exact[few] = load.power_growth(profile, rows[few], weights)
    return share, exact, out_of_memory


def _pod_columns(cluster: TrackedCluster, pod: PodInfo, request: VirtualRequest) -> ScoredPodColumns:
    return ScoredPodColumns(
        requests=cluster.state.request_vector(pod),
        nonzero=np.array(pod.nonzero_requests),
        virtual_request=request.amount,
        qos=int(pod.qos),
    )


def _allocatable(cluster: TrackedCluster) -> Floats:
    """(2,) cores and bytes of all nodes where they are known."""
    allocatable = cluster.state.allocatable[:, :2]
    return np.asarray(np.where(limited(allocatable), allocatable, 0.0).sum(axis=0))


def _cluster_figures(cluster: TrackedCluster, pod: PodInfo, needed: frozenset[str]) -> ClusterFigures:
    return ClusterFigures(
        qos_pods=cluster.state.qos_pods.sum(axis=0).astype(np.float64) if "qos_pods" in needed else np.zeros(3),
        qos_memory=cluster.qos_memory().sum(axis=0) if "qos_memory" in needed else np.zeros(3),
        allocatable=_allocatable(cluster) if needed & {"qos_pods", "qos_memory"} else np.zeros(2),
        stack_weight=cluster.stack_weight(pod),
    )


class WhyNeutral(Enum):
    """Label `because` of the metric forecast_score_neutral."""

    NO_MODEL = "no_model"
    OLD_MODEL = "old_model"
    NO_USAGE = "no_usage"
    OLD_STATE = "old_state"


_WORDS: Mapping[WhyNeutral, str] = {
    WhyNeutral.NO_MODEL: "no model is in use",
    WhyNeutral.OLD_MODEL: "the model is too old",
    WhyNeutral.NO_USAGE: "no node is measured",
    WhyNeutral.OLD_STATE: "the state of the cluster is too old",
}


def neutral_scores(cluster: TrackedCluster, level: Level) -> Mapping[str, WhyNeutral]:
    """Return the scores that are neutral, with the reason; under the lock. level: of the cluster as a whole."""
    if level == Level.NEUTRAL:
        return dict.fromkeys(SCORES, WhyNeutral.OLD_STATE)
    found = {}
    if cluster.predicted is None:
        found = dict.fromkeys(("predicted_peak", "qos_memory"), WhyNeutral.NO_MODEL)
    elif level == Level.REQUESTS:  # what pods need at their peak changes less in weeks than the hour of the peak does
        found = {"predicted_peak": WhyNeutral.OLD_MODEL}
    if not (cluster.measured_nodes() & cluster.state.alive).any():
        found["most_available"] = WhyNeutral.NO_USAGE
    return found


def neutral_reasons(weights: Mapping[str, float], neutral: Mapping[str, WhyNeutral]) -> tuple[str, ...]:
    """Return a sentence for each reason why scores that should count are neutral; it names those that go on.

    weights : of the scores that should count
    """
    counted = [name for name, weight in weights.items() if weight > 0]
    others = [name for name in counted if name not in neutral]
    sentences = []
    for why in WhyNeutral:
        if names := [name for name in counted if neutral.get(name) is why]:
            rest = f", {_listed(others)} count{'s' * (len(others) == 1)} as before" if others else ""
            sentences.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} neutral: {_WORDS[why]}{rest}")
    return tuple(sentences)


def _listed(names: list[str]) -> str:
    """Return a, b and c."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
