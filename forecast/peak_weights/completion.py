"""A history in which pods without measurements have usage: their weight, moved with what their nodes did in each half
hour.

One step of Richardson's and Lucy's deconvolution (1972, 1974) from the weights:

    usage_s = w_s x mean over the pods of s of (usage of their node / what the weights predict for it)

so an evening that is busier than others is busier for the services on the nodes that saw it, and predictors, peaks and
errors find days that differ. What follows in a fit (curves, quantiles of peaks, base) treats these services like any
other. Usage is what pods use themselves: what every pod costs its node besides is part of the weight, and comes on top
of usage again wherever pods are summed onto nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from base.arrays import AnyFloats, Bools, Floats, Floats32
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.peak_weights.observations import WINDOW_DAYS
from forecast.peak_weights.pods_on_nodes import day_counts, felt_beyond, sum_on_nodes
from forecast.peak_weights.weights import PeakWeights

_BOUNDS = (0.5, 2.0)
"""A half hour is at most this far from the weight: beyond, a node is doing something else."""


def complete_history(history: History, weights: PeakWeights) -> History:
    """The history with usage of the pods that weights were learned from nodes for, over the last four weeks.

    Only pairs of a service and a resource that no pod was measured for change, and the nodes' sums with them. Half
    hours in which no node was measured stay unknown.
    """
    if not weights.from_nodes.any():
        return history
    usage, on_nodes = history.usage_per_pod.copy(), history.node_pod_usage.copy()
    for day, counts in _recent_days(history):
        kind = history.describe_days().day_type[day]
        for r in np.flatnonzero(weights.from_nodes.any(axis=0)):
            wanted = weights.from_nodes[:, r]
            cost = weights.per_pod_cost[r, kind]
            weight = np.where(wanted[:, None], np.maximum(weights.weight[:, r, kind] - cost, 0.0), 0.0)
            known = _without_gaps(history, counts, day, int(r), weights.from_nodes)
            expected = weights.node_base[:, r, kind] + np.nan_to_num(known) + sum_on_nodes(counts, weight)
            if cost.any():
                expected = expected + felt_beyond(
                    counts, history.usage_per_pod[:, r, day], weights.correction[:, r], cost
                )
            factor = _moved(counts, history.node_usage[:, r, day], np.where(np.isfinite(known), expected, np.nan))
            of_day = np.where(wanted[:, None] & (history.replicas[:, day] > 0), weight * factor, np.nan)
            usage[wanted, r, day] = of_day[wanted]
            sums = sum_on_nodes(counts, np.nan_to_num(of_day))
            open_pods = sum_on_nodes(counts, (wanted[:, None] & np.isnan(of_day)).astype(np.float32)) > 0
            on_nodes[:, r, day] = np.where(open_pods, np.nan, known + sums)
    return replace(history, usage_per_pod=usage, node_pod_usage=on_nodes)


def pods_felt_by_nodes(history: History, weights: PeakWeights) -> Floats32:
    """What the nodes feel of their pods: measured sums, corrected, and the cost of each pod on top.

    (n_nodes, n_resources, n_days, 48); the very sums of the history where nothing is corrected. At least 0: a
    correction takes off a share of the service's mean. Pods of it on this node may use less, or went unmeasured.
    """
    corrected = np.flatnonzero((weights.correction != 1).any(axis=0) | (weights.per_pod_cost > 0).any(axis=(1, 2)))
    if not len(corrected):
        return history.node_pod_usage
    out = history.node_pod_usage.copy()
    for day, counts in _recent_days(history):
        kind = history.describe_days().day_type[day]
        for r in corrected:
            usage, cost = history.usage_per_pod[:, r, day], weights.per_pod_cost[r, kind]
            beyond = felt_beyond(counts, usage, weights.correction[:, r], cost)
            out[:, r, day] = np.maximum(out[:, r, day] + beyond, 0.0)  # NaN stays
    return out


def _recent_days(history: History) -> Iterator[tuple[int, sp.csr_matrix]]:
    """Index and composition of the days that are completed and corrected, one in memory at a time."""
    for day in range(max(0, history.n_days - WINDOW_DAYS), history.n_days):
        begin = day * SLOTS_PER_DAY
        placements = history.placements.between(begin, begin + SLOTS_PER_DAY)
        yield day, day_counts(placements, len(history.services), len(history.nodes))


def _of_services(counts: sp.csr_matrix, values: AnyFloats) -> Floats32:
    """Sum over the pods of each service of what their nodes have: (n_nodes, 48) -> (n_services, 48)."""
    summed: Floats32 = counts.T @ np.ascontiguousarray(values.T, dtype=np.float32).ravel()
    return summed.reshape(SLOTS_PER_DAY, -1).T


def _without_gaps(history: History, counts: sp.csr_matrix, day: int, resource: int, from_nodes: Bools) -> Floats:
    """The measured pods of each node, 0 where it has none but unmeasured services, NaN where some went unmeasured."""
    known = history.node_pod_usage[:, resource, day].astype(np.float64)
    measured = np.isfinite(history.usage_per_pod[:, resource]).any(axis=(1, 2)) & ~from_nodes[:, resource]
    if not measured.any():
        return np.zeros_like(known)
    should = sum_on_nodes(counts, np.repeat(measured[:, None], SLOTS_PER_DAY, axis=1)) > 0
    return np.where(np.isnan(known) & ~should, 0.0, known)


def _moved(counts: sp.csr_matrix, actual: AnyFloats, expected: AnyFloats) -> Floats:
    """Mean over a service's pods of actual / expected of their nodes; the cluster's without pods: (n_services, 48)."""
    known = np.isfinite(actual) & (np.nan_to_num(expected) > 0)
    ratio = np.where(known, np.nan_to_num(actual) / np.where(known, expected, 1.0), 0.0)
    pods = _of_services(counts, known.astype(np.float32))
    with np.errstate(invalid="ignore", divide="ignore"):
        total, of_all = np.where(known, actual, 0.0).sum(axis=0), np.where(known, expected, 0.0).sum(axis=0)
        cluster = np.where(of_all > 0, total / of_all, np.nan)  # (48,)
        own = _of_services(counts, np.clip(ratio, 0.0, 2 * _BOUNDS[1])) / pods
    return np.clip(np.where(pods > 0, own, cluster), *_BOUNDS).astype(np.float64)
