"""Peak weights: what one more pod of a service adds to a node, per resource, kind of day and half hour.

Where no pod is measured (log bytes counted per node, disk controllers) they come from the nodes alone (`curves`).
Elsewhere they are the measured usage, corrected where nodes clearly feel more or less of it (`corrections`). Where a
resource has both kinds of pods and every pod costs its node something, the former are learned again from what that
leaves of the nodes. How well each is known is `levels`' answer.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from forecast.calendar import SLOTS_PER_DAY, DayType
from forecast.history import History
from forecast.peak_weights.corrections import correct
from forecast.peak_weights.level_regression import (
    REPLICATES,
    LevelRegression,
    block_structure,
    build,
    fit_levels,
    node_draws,
)
from forecast.peak_weights.observations import Observations, observe, without_costs
from forecast.peak_weights.pod_curves import PodCurves, fit_curves
from forecast.peak_weights.pods_on_nodes import always_together
from forecast.resources import RESOURCES

IDENTIFIED_ERROR = 0.2
"""A weight is identified when its standard error is at most this share of it."""

_PRIOR_ERROR = 1.0
"""Standard error of a prior as a share of it (level_regression.py draws it with this spread)."""

_LEAST_NODES = 3
"""The effect of a service on fewer nodes cannot be separated from what is special about these nodes."""

_JUDGED_DAYS = 14
"""Errors and corrections are learned from two weeks; four take twice as long and find little more."""

_MEASURED_PODS = 0.5
"""What pods cost besides can only be seen where at least this share of them is measured."""


@dataclass(frozen=True, slots=True)
class PeakWeights:
    """What is known about the load that pods bring to nodes. Day types in the order of `DayType`, base units.

    weight       : (n_services, n_resources, 4, 48) what one more pod adds to a node, its cost included; NaN = nothing
                   known
    error        : (n_services, n_resources) standard error as a share of the weight; NaN = unknown
    identified   : (n_services, n_resources) error at most 20 %, seen on three nodes at least and, where no pod is
                   measured, not always beside the same other service
    from_nodes   : (n_services, n_resources) no pod was measured, the weight was learned from nodes
    prior        : (n_services, n_resources) mean usage of a pod that is believed without any look at nodes: measured,
                   or suggested by the request; NaN = nothing
    correction   : (n_services, n_resources) node load / measured usage of a pod; exactly 1 where nothing is clear
    per_pod_cost : (n_resources, 4, 48) what a pod costs the node besides its own usage; exactly 0 where nothing is
                   clear
    node_base    : (n_nodes, n_resources, 4, 48) what a node uses besides all pods and their cost, of resources with
                   `from_nodes`; else NaN
    determined   : (n_services, n_resources) share of the prior's variance that the nodes remove, 0..1: 1 - (posterior /
                   prior standard deviation)^2; NaN = takes no part in the regression. Its sum over services is the
                   regression's effective number of parameters (Hastie, Tibshirani & Friedman 2009, "The Elements of
                   Statistical Learning", 7.6): how many services the nodes distinguish
    """

    weight: Floats32
    error: Floats32
    identified: Bools
    from_nodes: Bools
    prior: Floats32
    correction: Floats32
    per_pod_cost: Floats32
    node_base: Floats32
    determined: Floats32

    def published(self) -> tuple[Floats32, Floats32]:
        """Return weight and error as they are published: a weight that is not identified is replaced by its prior.

        The prior of a service without a measured pod is one level for all half hours; the cost of each pod is added.
        Its error is at least 1, the standard error that the regression assumes of every prior. A measured service
        keeps its measured curve, which is its prior. Curves of usage keep what the regression found: where services
        always sit together, their sum is known although the parts are not.
        """
        replaced = self.from_nodes & ~self.identified & np.isfinite(self.prior)
        level = self.prior[:, :, None, None] + self.per_pod_cost
        weight = np.where(replaced[:, :, None, None], level, self.weight)
        error = np.where(replaced, np.maximum(self.error, _PRIOR_ERROR), self.error)
        return weight.astype(np.float32), error.astype(np.float32)


def fit_peak_weights(history: History, *, seed: int = 0) -> PeakWeights:
    """Learn weights from the last four weeks of a history.

    seed : of the bootstrap over nodes
    Nothing is raised for what cannot be learned: it stays NaN, not identified, and uncorrected.
    """
    seen = observe(history)
    curves = fit_curves(seen)
    from_nodes = np.asarray(np.isfinite(curves.usage).all(axis=(2, 3)))
    measured = _measured_means(seen)  # (n_services, n_resources, n_kinds, 48)
    correction = np.ones(seen.measured.shape)
    cost = np.zeros((len(RESOURCES), SLOTS_PER_DAY))
    error, determined = np.full(seen.measured.shape, np.nan), np.full(seen.measured.shape, np.nan)
    if seen.usable.any() and seen.placed.any():
        curves = _judge(seen, curves, measured, correction, cost, error, determined, seed)
    own = np.where(from_nodes[:, :, None, None], curves.usage, measured * correction[:, :, None, None])
    weight = own + cost[:, None]
    with np.errstate(invalid="ignore"):
        identified = (error <= IDENTIFIED_ERROR) & (seen.n_on >= _LEAST_NODES)[:, None]
    if from_nodes.any():
        days = [seen.day(index) for index in range(seen.history.n_days)]
        identified &= ~(from_nodes & always_together(days, len(history.services), len(history.nodes))[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # pairs of which nothing is known
        mean = np.nanmean(measured, axis=(2, 3))
    kinds = _substitutes(seen.kinds)
    return PeakWeights(
        weight=weight[:, :, kinds].astype(np.float32),
        error=error.astype(np.float32),
        identified=identified,
        from_nodes=from_nodes,
        prior=np.where(from_nodes, curves.prior, mean).astype(np.float32),
        correction=correction.astype(np.float32),
        per_pod_cost=np.repeat(cost[:, None], len(DayType), axis=1).astype(np.float32),
        node_base=curves.base[:, :, kinds].astype(np.float32),
        determined=determined.astype(np.float32),
    )


def _judge(
    seen: Observations,
    curves: PodCurves,
    measured: Floats,
    correction: Floats,
    cost: Floats,
    error: Floats,
    determined: Floats,
    seed: int,
) -> PodCurves:
    """Fill in errors, what is determined, corrections and costs, by resource; returns the curves, less the costs."""
    whole, seen = seen, seen.last(_JUDGED_DAYS)
    history = seen.history
    rng = np.random.default_rng(seed)
    draws = node_draws(history.nodes, REPLICATES, rng)
    jitter = _by_name([str(service) for service in history.services], rng)
    rank = np.argsort(np.argsort(np.array(history.nodes)))
    halves = np.stack([rank % 2 == 0, rank % 2 == 1], axis=1).astype(np.float32)
    blocks = block_structure(seen)
    slots_of = np.bincount(blocks.service, weights=blocks.end - blocks.first, minlength=len(history.services))
    for r in np.flatnonzero(seen.usable):
        is_measured = seen.measured[:, r]
        with_cost = bool(slots_of[is_measured].sum() >= _MEASURED_PODS * slots_of.sum())
        daily = _daily(seen, curves, measured, int(r))
        fit = build(seen, blocks, daily, int(r), is_measured, with_cost)
        replicates, robust = fit_levels(fit, draws, jitter)
        error[:, r], determined[:, r] = _error(fit, replicates, daily, is_measured, seen.placed)
        with np.errstate(invalid="ignore"):
            candidate = is_measured & (error[:, r] <= IDENTIFIED_ERROR) & (seen.n_on >= _LEAST_NODES)
        if is_measured.any():
            found = correct(fit, replicates, robust, draws, candidate, halves)
            correction[:, r], cost[r] = found.factor, found.cost
        if cost[r].any() and not is_measured[seen.placed].all():
            left = without_costs(whole, int(r), found.factor, found.cost)
            curves = _exchanged(curves, fit_curves(left), int(r))
            left = left.last(_JUDGED_DAYS)
            daily = _daily(left, curves, measured, int(r))
            fit = build(left, blocks, daily, int(r), is_measured, with_cost=False)
            again, left_determined = _error(fit, fit_levels(fit, draws, jitter)[0], daily, is_measured, seen.placed)
            error[:, r] = np.where(is_measured, error[:, r], again)
            determined[:, r] = np.where(is_measured, determined[:, r], left_determined)
    return curves


def _daily(seen: Observations, curves: PodCurves, measured: Floats, r: int) -> Floats:
    """What a pod used on each day, as measured or else as fitted; 0 = not known: (n_services, n_days, 48)."""
    usage = _filled(seen.history.usage_per_pod[:, r], measured[:, r][:, seen.kind])
    return np.nan_to_num(np.where(seen.measured[:, r, None, None], usage, curves.usage[:, r][:, seen.kind]))


def _error(
    fit: LevelRegression, replicates: Floats32, daily: Floats, measured: Bools, placed: Bools
) -> tuple[Floats, Floats]:
    """Standard errors of the levels as a share of them, and `PeakWeights.determined`; NaN = unknown: (n_services,)."""
    own = fit.levels(replicates)
    level = own[:, 0] + measured
    deviation = own[:, 1:].std(axis=1, ddof=1)
    # A fitted curve whose own level fits another scale better is that much in doubt.
    off = np.where(measured, 0.0, own[:, 0] - 1.0)
    told = placed & (daily.max(axis=(1, 2)) > 0)
    error = np.where(told & (level > 0), np.hypot(deviation, off) / np.maximum(level, 1e-6), np.nan)
    return error, np.where(told, 1 - np.minimum(deviation / _PRIOR_ERROR, 1.0) ** 2, np.nan)


def _exchanged(curves: PodCurves, other: PodCurves, r: int) -> PodCurves:
    """`curves` with one resource of `other`."""
    usage, prior, base = curves.usage.copy(), curves.prior.copy(), curves.base.copy()
    usage[:, r], prior[:, r], base[:, r] = other.usage[:, r], other.prior[:, r], other.base[:, r]
    return PodCurves(usage, prior, base)


def _by_name(names: list[str], rng: np.random.Generator) -> Floats32:
    """Standard normal draws, (n, REPLICATES), 0 in the first column; by the order of names."""
    out = np.empty((len(names), REPLICATES), dtype=np.float32)
    out[np.argsort(np.array(names))] = rng.standard_normal(out.shape, dtype=np.float32)
    out[:, 0] = 0.0
    return out


def _measured_means(seen: Observations) -> Floats:
    """Mean measured usage of a pod per kind of day and slot: (n_services, n_resources, n_kinds, 48), NaN = unknown."""
    usage = seen.history.usage_per_pod
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        overall = np.asarray(np.nanmean(usage, axis=(2, 3), dtype=np.float64))[:, :, None, None]
        by_slot = np.asarray(np.nanmean(usage, axis=2, dtype=np.float64))[:, :, None]
        by_kind = np.stack(
            [np.nanmean(usage[:, :, seen.kind == k], axis=2, dtype=np.float64) for k in range(len(seen.kinds))], axis=2
        )
    by_kind = _filled(by_kind, by_slot)
    return _filled(by_kind, overall)


def _filled(values: AnyFloats, substitute: AnyFloats) -> Floats:
    return np.asarray(np.where(np.isfinite(values), values, substitute), dtype=np.float64)


def _substitutes(kinds: tuple[DayType, ...]) -> list[int]:
    """For each day type the index of the kind that stands for it: itself, or the most similar one seen."""
    similar = {
        DayType.WORKDAY: (DayType.WORKDAY, DayType.SATURDAY, DayType.SUNDAY, DayType.HOLIDAY),
        DayType.SATURDAY: (DayType.SATURDAY, DayType.SUNDAY, DayType.HOLIDAY, DayType.WORKDAY),
        DayType.SUNDAY: (DayType.SUNDAY, DayType.HOLIDAY, DayType.SATURDAY, DayType.WORKDAY),
        DayType.HOLIDAY: (DayType.HOLIDAY, DayType.SUNDAY, DayType.SATURDAY, DayType.WORKDAY),
    }
    return [next(kinds.index(kind) for kind in similar[wanted] if kind in kinds) for wanted in DayType]
