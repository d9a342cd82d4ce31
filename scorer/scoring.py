"""Scores of one pod on every node, from the tables as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from forecast.arrays import Bools, Floats, Ints
from forecast.resources import MEMORY
from scorer.cluster.objects import PodInfo
from scorer.degradation import Level, level_of_nodes
from scorer.live.virtual_request import VirtualRequest
from scorer.scores.capacity import NEUTRAL_SCORE, limited
from scorer.scores.catalogue import RegisteredScore, combine
from scorer.scores.columns import ClusterFigures, NodeColumns, PodColumns
from scorer.scores.energy import best_nodes
from scorer.scores.predicted_peak import BEST_NODES, MEMORY_LIMIT
from scorer.tracking import TrackedCluster

__all__ = ["PodScores", "score_pod", "weights_without_model"]

FULL = 1.0
"""Share of capacity in use now from which a node is avoided where nothing but requests decides. Passing over nodes from
0.95 on was worse than not looking at all, from 1.0 on it cost nothing (docs/placement.md)."""


@dataclass(frozen=True, slots=True)
class PodScores:
    """Scores of one pod on some of the cluster's rows.

    rows    : (n_nodes,) rows scored
    total   : (n_nodes,) weighted mean, 0..100
    parts   : each score that counts, (n_nodes,)
    weights : those used, which differ from those asked for where there is no model
    levels  : (n_nodes,) rung of the degradation ladder
    full    : (n_nodes,) avoided, since in use now to the last bit
    profile : of the pod, None without a model
    """

    rows: Ints
    total: Floats
    parts: Mapping[str, Floats]
    weights: Mapping[str, float]
    levels: Ints
    full: Bools
    profile: int | None
    virtual_request: VirtualRequest | None


def weights_without_model(weights: Mapping[str, float]) -> dict[str, float]:
    """What scores count when there is no forecast: its weight goes to the default scores of kube-scheduler."""
    without = {name: weight for name, weight in weights.items() if name != "predicted_peak"}
    for name in ("least_allocated", "balanced_allocation"):
        without[name] = without.get(name, 0.0) + weights.get("predicted_peak", 0.0) / 2
    return without


def score_pod(
    cluster: TrackedCluster,
    pod: PodInfo,
    rows: Ints,
    weights: Mapping[str, float],
    scores: Mapping[str, RegisteredScore],
    level: Level,
) -> PodScores:
    """Score a pod on rows of the cluster.

    level : of nodes that nobody measures (scorer.degradation.level_without_live)
    """
    levels = level_of_nodes(level, cluster.measured_nodes()[rows])
    nobody: Bools = np.zeros(len(rows), dtype=bool)
    if level == Level.NEUTRAL:
        neutral = np.full(len(rows), NEUTRAL_SCORE)
        return PodScores(rows, neutral, {}, {}, levels, nobody, None, None)
    used = dict(weights)
    profile = None
    if level == Level.REQUESTS or cluster.predicted is None:
        used = weights_without_model(weights)
    else:
        profile = cluster.profile(pod)
    request = cluster.expected_use(pod)
    columns = _node_columns(cluster, rows, profile)
    pod_columns = _pod_columns(cluster, pod, profile, request)
    figures = _cluster_figures(cluster)
    parts = {name: scores[name].compute(columns, pod_columns, figures) for name, weight in used.items() if weight > 0}
    total = combine(parts, used)
    full = nobody
    if profile is None:
        limits = limited(columns.capacity)
        left = np.where(limits, columns.virtual_available / np.where(limits, columns.capacity, 1.0), np.nan)
        full = np.asarray((left <= 1 - FULL).any(axis=1))
        if not full.all():
            total = np.where(full, 0.0, total)
    return PodScores(rows, total, parts, used, levels, full, profile, request)


def _node_columns(cluster: TrackedCluster, rows: Ints, profile: int | None) -> NodeColumns:
    state = cluster.state
    share, exact = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    out_of_memory: Bools = np.zeros(len(rows), dtype=bool)
    qos_memory = np.zeros((len(rows), 3))
    predicted = cluster.predicted
    if profile is not None and predicted is not None:
        load, n = predicted.load, predicted.load.n_nodes
        inside = rows < n
        at = rows[inside]
        mean = load.mean_share(profile)[at]
        share[inside] = np.where(load.known[at], mean, np.nan)
        out_of_memory[inside] = load.peak_with(profile, MEMORY)[at] > MEMORY_LIMIT
        qos_memory[inside] = predicted.qos_memory[at]
        known = np.isfinite(share)
        safe = known & ~out_of_memory
        few = best_nodes(share, safe if safe.any() else known, BEST_NODES)
        if len(few):
            exact[few] = load.power_growth(profile, rows[few])
    return NodeColumns(
        kinds=tuple(state.kinds),
        allocatable=state.allocatable[rows],
        requested=state.requested[rows],
        requested_nonzero=state.requested_nonzero[rows],
        capacity=cluster.capacity[rows],
        virtual_available=cluster.virtual_available()[rows],
        qos_pods=state.qos_pods[rows].astype(np.float64),
        qos_memory=qos_memory,
        predicted_share=share,
        exact_cost=exact,
        out_of_memory=out_of_memory,
        known=state.alive[rows],
    )


def _pod_columns(cluster: TrackedCluster, pod: PodInfo, profile: int | None, request: VirtualRequest) -> PodColumns:
    memory = float(request.amount[MEMORY])
    if profile is not None and cluster.predicted is not None:
        memory = cluster.predicted.memory_peak(profile)
    return PodColumns(
        requests=cluster.state.request_vector(pod),
        nonzero=np.array(pod.nonzero_requests),
        virtual_request=request.amount,
        qos=int(pod.qos),
        memory=memory,
    )


def _cluster_figures(cluster: TrackedCluster) -> ClusterFigures:
    memory = np.zeros(3) if cluster.predicted is None else cluster.predicted.qos_memory.sum(axis=0)
    return ClusterFigures(
        qos_pods=cluster.state.qos_pods.sum(axis=0).astype(np.float64),
        qos_memory=memory,
        stack_weight=cluster.stack_weight,
    )
