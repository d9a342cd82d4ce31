"""How many standard deviations lie between a node's mean curve and its daily peak, learned on nodes out of sample.

A bound per slot is not a bound of the day's peak, and a sum of services' bounds is not a bound of a node. So past weeks
are forecast from before they began, summed over the pods that were on each node, and held against what the
nodes really used; `composition.required_z` turns each node-day into the z it would have needed. The spread of a day is
taken from the other rehearsed days: measured on its own residuals it would fit them, and z would come out too small.
`composition.plausible_z` limits each z before they are pooled, and the result: one node whose figures contradict each
other must not move the bound of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import node_load, plausible_z, required_z
from forecast.history import History
from forecast.node_base import NodeBase
from forecast.peak_weights import PeakWeights
from forecast.rehearsal import PastForecast, spread_of_past
from forecast.resources import RESOURCES
from forecast.spread import Spread

_FOLDS = 3

_FALLBACK_Z = (0.7, 2.5)
"""For the median and for any bound, where too few nodes were measured.

About the 0.5 and the 0.95 quantile of the highest of 48 correlated normal errors.
"""

_LEAST_NODE_DAYS = 20

_AT_LIMIT = 0.95
"""A median of the needed z that is this close to its limit says that the nodes used something that no pod explains."""


def calibrate_nodes(
    history: History, past: Sequence[PastForecast], base: NodeBase, quantiles: Sequence[float], weights: PeakWeights
) -> Floats:
    """The z of each resource and quantile: (n_resources, n_quantiles), from the node-days of the rehearsed weeks.

    weights : corrections and costs, as `PeakModel.usage_on_node` will apply them
    """
    needed: list[list[Floats]] = [[] for _ in RESOURCES]
    for forecast in past:
        n_days = forecast.usage.shape[2]
        # A single rehearsed week is split, so that every day has other days to take its spread from.
        edges = (
            [0, n_days] if len(past) >= _FOLDS else np.linspace(0, n_days, min(_FOLDS, n_days) + 1).astype(int).tolist()
        )
        for first, end in pairwise(edges):
            span = slice(forecast.first_day + first, forecast.first_day + end)
            spread = spread_of_past(history, past, (span.start, span.stop))
            for r, z in enumerate(_needed(history, forecast.usage[:, :, first:end], span, spread, base, weights)):
                needed[r].append(z)
    pooled = np.array(
        [[_quantile([_limited(part, q) for part in values], q) for q in quantiles] for values in needed]
    )  # (n_resources, n_quantiles)
    limit = plausible_z(np.full(len(quantiles), np.inf), quantiles)
    for r, q in np.argwhere(pooled >= _AT_LIMIT * limit):
        if quantiles[q] <= 0.5:
            # No error of the forecast, another load: it would lift whatever hour has the largest error.
            pooled[r, q] = _FALLBACK_Z[0]
    return plausible_z(pooled, quantiles)


def _limited(z: Floats, quantile: float) -> Floats:
    """The z of node-days, each within the limits of a quantile: (n,)."""
    return plausible_z(z[:, None], (quantile,))[:, 0]


def _needed(
    history: History, usage: Floats, span: slice, spread: Spread, base: NodeBase, weights: PeakWeights
) -> list[Floats]:
    """The z every measured node-day of the span would have needed, per resource."""
    types = history.describe_days().day_type[span]
    n_days = len(types)
    placements = history.placements.between(span.start * SLOTS_PER_DAY, span.stop * SLOTS_PER_DAY)
    needed = []
    for r in range(len(RESOURCES)):
        actual = history.node_usage[:, r, span].reshape(len(history.nodes), -1)
        if not np.isfinite(actual).any():
            needed.append(np.empty(0))
            continue
        factor = weights.correction[:, r, None]
        load = node_load(
            placements,
            (usage[:, r] * factor[..., None] + weights.per_pod_cost[r, types]).reshape(len(history.services), -1),
            np.tile((spread.own_std[:, r] * factor) ** 2, (1, n_days)),
            np.tile((spread.shared_std[:, r] * factor) ** 2, (1, n_days)),
            base.profile[:, r, types].reshape(len(history.nodes), -1),
            np.tile(base.std[:, r] ** 2, (1, n_days)),
            float(spread.cluster_std[r]),
        )
        z = required_z(load, actual)
        needed.append(z[np.isfinite(z)])
    return needed


def _quantile(parts: list[Floats], quantile: float) -> float:
    """The pooled quantile, and for a bound as much more as its parts differ.

    A part is a rehearsed week, or some days of one where there are fewer than three. Nodes of one week err together,
    so a few weeks are a few observations, however many nodes there are. The standard error of the mean over parts is
    added to a bound; the median stays as it is.

    parts : z of each measured node-day, one array a part
    """
    values = np.concatenate(parts) if parts else np.empty(0)
    if len(values) < _LEAST_NODE_DAYS:
        return _FALLBACK_Z[quantile > 0.5]
    # The finite-sample correction of split-conformal prediction.
    pooled = float(np.quantile(values, min(1.0, quantile * (1 + 1 / len(values)))))
    if quantile <= 0.5:
        return pooled
    of_parts = [np.quantile(part, quantile) for part in parts if len(part)]
    return pooled + (float(np.std(of_parts, ddof=1) / np.sqrt(len(of_parts))) if len(of_parts) > 1 else 0.0)
