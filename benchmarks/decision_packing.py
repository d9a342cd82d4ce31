"""Packing of predicted curves onto as few equal nodes as possible, and what then happens on these nodes.

As in CloudCons (KDD 2026): pods are placed by falling size, first fit or best fit; a node takes a pod if the predicted
sum stays under its limit in every half hour. Violations are counted on the curves that came.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from base.arrays import Floats, Ints
from forecast.composition import bound_at, with_common_error


class Rule(Enum):
    """Which of the nodes that have room takes the pod."""

    FIRST_FIT = "first fit"
    BEST_FIT = "best fit"


@dataclass(frozen=True, slots=True)
class Demand:
    """What pods are predicted to use, and how their errors add up on a node.

        node(t) = sum mean(t) + z std(t),   std(t)^2 = sum variance(t) + (cluster_std sum mean(t))^2

    as `forecast.composition` has it. With z = 0 the curves themselves are summed.

    mean, variance : (n_pods, n_slots) base units, and their square
    """

    mean: Floats
    variance: Floats | None = None
    cluster_std: float = 0.0
    z: float = 0.0

    def at_peak(self) -> Demand:
        """Return the demand of an operator who knows no hours: each pod uses its highest half hour all day."""
        return Demand(np.repeat(self.mean.max(axis=1, keepdims=True), self.mean.shape[1], axis=1))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a packing led to.

    utilisation    : mean load / capacity over nodes and half hours
    violation_rate : share of node half hours with a load above the capacity
    severity       : mean excess over the capacity, as a share of it, in these half hours; 0 without any
    """

    utilisation: float
    violation_rate: float
    severity: float


def pack(demand: Demand, limit: float, rule: Rule = Rule.FIRST_FIT) -> Ints:
    """Return the node of each pod: (n_pods,). A pod that is larger than the limit gets a node of its own."""
    n_pods, n_slots = demand.mean.shape
    with_errors = demand.variance is not None and demand.z != 0
    variance = demand.variance if demand.variance is not None else np.zeros_like(demand.mean)
    alone = _bound(demand, demand.mean, variance) if with_errors else demand.mean
    load, spread = np.zeros((n_pods, n_slots)), np.zeros((n_pods, n_slots))
    node_of = np.zeros(n_pods, dtype=np.int64)
    used = 0
    for pod in np.argsort(-alone.max(axis=1), kind="stable"):
        total = load[:used] + demand.mean[pod]  # (n_used, n_slots)
        bound = _bound(demand, total, spread[:used] + variance[pod]) if with_errors else total
        peak = bound.max(axis=1)
        fits = np.flatnonzero(peak <= limit)
        if not len(fits):
            node, used = used, used + 1
        else:
            node = int(fits[0] if rule is Rule.FIRST_FIT else fits[peak[fits].argmax()])
        load[node] += demand.mean[pod]
        spread[node] += variance[pod]
        node_of[pod] = node
    return node_of


def _bound(demand: Demand, mean: Floats, variance: Floats) -> Floats:
    return bound_at(with_common_error(mean, variance, demand.cluster_std), demand.z)


def outcome(node_of: Ints, actual: Floats, capacity: float) -> Outcome:
    """Play back the curves that came, (n_pods, n_slots), on the nodes of a packing."""
    load = np.zeros((int(node_of.max()) + 1, actual.shape[1]))
    np.add.at(load, node_of, actual)
    share = load / capacity
    above = share > 1
    excess = float((share[above] - 1).mean()) if above.any() else 0.0
    return Outcome(float(share.mean()), float(above.mean()), excess)


def at_utilisation(line: Floats, utilisation: float, figure: int) -> float:
    """Return a figure of a line of outcomes at a utilisation; NaN where the line does not reach it.

    line   : (n_settings, n_figures), the first figure is the utilisation; in any order
    figure : the column that is interpolated linearly between neighbours by utilisation; equal ones are averaged
    """
    x, position = np.unique(line[:, 0], return_inverse=True)
    y = np.bincount(position, line[:, figure]) / np.bincount(position)
    return float(np.interp(utilisation, x, y, left=np.nan, right=np.nan))


def mean_outcome(outcomes: list[Outcome]) -> Outcome:
    """Return the mean over days of the same setting. Severity: over the days that had a violation."""
    hurt = [one.severity for one in outcomes if one.violation_rate > 0]
    return Outcome(
        float(np.mean([one.utilisation for one in outcomes])),
        float(np.mean([one.violation_rate for one in outcomes])),
        float(np.mean(hurt)) if hurt else 0.0,
    )
