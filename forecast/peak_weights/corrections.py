"""What a node feels of measured pods beyond what they are measured to use: a factor each, and a cost every pod has.

Most clusters need neither, so the burden of proof is on them. A factor counts where its service is identified and it
lies more than three standard errors from 1 both as estimated and after shrinking (empirical Bayes: the spread of
the true factors is what the estimates vary beyond their errors). Then factors, cost, both or neither are fitted on
either half of the nodes and must predict the other half better by a margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from base.arrays import AnyFloats, Bools, Floats, Floats32
from forecast.calendar import SLOTS_PER_DAY
from forecast.peak_weights.level_regression import PARTS, LevelRegression, ridges

_SIGNIFICANT = 3.0
"""Two standard errors are passed by chance by one service in twenty, and clusters have hundreds."""

_SMALLEST = 0.03
"""Factors closer to 1 are within what exporters differ by."""

_MARGIN = 0.02
"""Corrections are used where they lower the mean absolute error on held-back nodes by at least this share."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """factor: (n_services,), exactly 1 where nothing is clear; cost: (48,) base units a pod, exactly 0 likewise."""

    factor: Floats
    cost: Floats


def correct(
    fit: LevelRegression, replicates: Floats32, robust: Floats32, draws: Floats32, candidate: Bools, halves: Floats32
) -> Corrections:
    """The corrections of one resource.

    replicates : (n_columns, n_replicates) from `fit_levels`, the estimate first
    candidate  : (n_services,) measured services that are identified
    halves     : (n_nodes, 2) 1 for the nodes of each half
    """
    none = Corrections(np.ones(fit.n_services), np.zeros(SLOTS_PER_DAY))
    known = fit.weight > 0
    if not known.any():
        return none
    estimate = replicates[: fit.n_services, 0].astype(np.float64)
    error = replicates[: fit.n_services, 1:].std(axis=1, ddof=1).astype(np.float64)
    clear, spread = _clear(estimate, error, candidate)
    first_cost = fit.n_scales + fit.n_bases
    costs_at = slice(first_cost, first_cost + fit.n_costs)
    costs = replicates[costs_at].mean(axis=0)
    with_cost = bool(fit.n_costs and costs[0] > _SIGNIFICANT * float(costs[1:].std(ddof=1)))
    noise = max(float(np.median(np.abs(fit.residual(replicates[:, 0])[known]) * np.sqrt(fit.weight[known]))) ** 2, 1e-8)

    prior = np.zeros((fit.z.shape[1], 1), dtype=np.float32)
    prior[fit.n_services : fit.n_scales] = 1.0

    def ridge(use_factors: bool, use_cost: bool) -> Floats32:
        out = ridges(fit, noise, np.where(clear & use_factors, spread, 0.0))
        if not use_cost:
            out[costs_at] = np.inf
        return out

    def solved(use_factors: bool, use_cost: bool, counts: Floats32) -> Floats32:
        precision = ridge(use_factors, use_cost)
        pinned = ~np.isfinite(precision)
        x = fit.solve(
            np.where(pinned, 1e12, precision).astype(np.float32),
            np.repeat(prior, counts.shape[1], axis=1),
            counts,
            robust=robust,
        )
        x[pinned] = 0.0
        return x

    choices = [(False, False)]
    choices += [(True, False)] if clear.any() else []
    choices += [(False, True)] if with_cost else []
    choices += [(True, True)] if clear.any() and with_cost else []
    if len(choices) == 1:
        return none
    best, least = choices[0], np.inf
    for choice in choices:
        wrong = _held_back_error(fit, solved(*choice, halves), halves)
        # Simpler ones come first, and a richer one has to earn its place.
        if wrong < (1 - _MARGIN) * least:
            best, least = choice, wrong
    if best == (False, False):
        return none
    final = solved(*best, draws)
    factor, cost = np.ones(fit.n_services), np.zeros(SLOTS_PER_DAY)
    if best[0]:
        own = final[: fit.n_services]
        still = clear & (np.abs(own[:, 0]) > _SIGNIFICANT * own[:, 1:].std(axis=1, ddof=1))
        factor[still] = np.maximum(1.0 + own[still, 0].astype(np.float64), 0.0)
    if best[1]:
        costs = final[costs_at]
        mean = costs.mean(axis=0)
        if mean[0] > _SIGNIFICANT * float(mean[1:].std(ddof=1)):
            cost = _curve(costs[:, 0] * fit.unit)
    return Corrections(factor, cost)


def _clear(estimate: Floats, error: Floats, candidate: Bools) -> tuple[Bools, float]:
    """Which deviations are clear, and the standard deviation of true ones."""
    if not candidate.any():
        return candidate, 0.0
    between = max(0.0, float(np.mean(estimate[candidate] ** 2 - error[candidate] ** 2)))
    share = between / np.maximum(between + error**2, 1e-30)
    shrunk = share * estimate
    clear = (
        candidate
        & (np.abs(estimate) > _SIGNIFICANT * error)
        & (np.abs(shrunk) > _SIGNIFICANT * np.sqrt(share) * error)
        & (np.abs(shrunk) > _SMALLEST)
    )
    return clear, float(np.sqrt(between))


def _held_back_error(fit: LevelRegression, x: Floats32, halves: Floats32) -> float:
    """Mean absolute error on the nodes that a fit did not see, in relative units."""
    errors = []
    for half in range(2):
        held_back = (halves[fit.node, half] == 0) & (fit.weight > 0)
        node, residual = fit.node[held_back], fit.residual(x[:, half])[held_back] * np.sqrt(fit.weight[held_back])
        # What a node always has too much or too little of is its own and no merit of either.
        count = np.maximum(np.bincount(node, minlength=len(halves)), 1)
        lasting = np.bincount(node, weights=residual, minlength=len(halves)) / count
        errors.append(np.abs(residual - lasting[node]))
    together = np.concatenate(errors)
    return float(together.mean()) if len(together) else np.inf


def _curve(parts: AnyFloats) -> Floats:
    """A smooth daily curve with these means in the parts of the day, round midnight: (48,), >= 0.

    The derivative of a periodic cubic spline through the running sums (a histospline, Boneva, Kendall & Stefanov 1971):
    linear between the middles of the parts, a peak would come out a fifth too low.
    """
    means = parts.astype(np.float64)
    beyond_mean = np.concatenate([[0.0], np.cumsum(means - means.mean())])
    beyond_mean[-1] = 0.0
    border = np.arange(PARTS + 1) * (SLOTS_PER_DAY / PARTS)
    running = CubicSpline(border, beyond_mean * (SLOTS_PER_DAY / PARTS), bc_type="periodic")
    slot = np.arange(SLOTS_PER_DAY + 1)
    return np.asarray(np.maximum(np.diff(running(slot)) + means.mean(), 0.0), dtype=np.float64)
