"""What a pod of each service uses if pods are not measured: a curve per service, kind of day and half hour.

    node[n, d, h] - measured pods = base_class(n)(k, h) size_n + delta_n + sum_s c[n, s, d, h] w_s(k, h) + noise

c: pods of service s on node n; k: kind of day d; only services without a measured pod. First every fourth slot with a
prior from requests; that gives levels, the size of the noise, and what share of the load pods have. Then all slots,
started from the first and drawn to the cluster's daily shape at those levels. Numbers below are relative standard
deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.cold_start import request_units
from forecast.peak_weights.observations import Observations
from forecast.peak_weights.pods_on_nodes import Composition, compose
from forecast.peak_weights.solver import Penalties, Rows, solve
from forecast.resources import CPU, MEMORY

_PRIOR_SPREAD = 6.0
"""Requests mislead by about their own size. That is one belief about a level, not one for each of 144 slots and kinds
of day: a spread of 1 in each of them pulls levels by several percent."""

_BASE_SPREAD = 2.0
_STEP = 0.3
"""A service's curve moves by up to a third of its level in half an hour; 0.1 flattens evening peaks by 5 %."""
_BASE_STEP = 0.1
_APART = 1.0
"""Weekends differ from workdays by about a third, in all slots alike: in each slot much less is believed."""
_DEVIATION = 0.01
"""A node of a class differs from the others by a few percent; it is drawn to them strongly, since what a node does
always is also what services that never move do."""
_POD_SHARE = 0.7
"""Before anything is known, pods are taken to cause this share of a node's load."""
_FIRST_NOISE = 0.1
_LEAST_NOISE = 0.01
_NOTHING = 1e-3
"""A curve of CPU or memory below this share of what nodes use by pod is none."""
_COARSE = np.arange(0, SLOTS_PER_DAY, 4)
_FIRST_ITERATIONS, _COARSE_ITERATIONS, _ITERATIONS = 40, 120, 80


@dataclass(frozen=True, slots=True)
class PodCurves:
    """Fitted parts of a node's usage, base units; resources and services not fitted are NaN, and services of which
    nodes show neither CPU nor memory.

    usage : (n_services, n_resources, n_kinds, 48) of one pod
    prior : (n_services, n_resources) mean usage of one pod that its request suggests
    base  : (n_nodes, n_resources, n_kinds, 48) of the node besides all pods
    """

    usage: Floats
    prior: Floats
    base: Floats


@dataclass(frozen=True, slots=True)
class _Problem:
    """One resolution of the regression: what is constant about it.

    scale : (n_resources,) base units of 1 in x
    """

    composition: Composition
    y: Floats32
    relative_error: Floats32
    scale: Floats


def fit_curves(seen: Observations) -> PodCurves:
    """Curves of all services no pod of which was measured, for the resources that nodes are measured for."""
    history = seen.history
    n_services, n_resources = seen.measured.shape
    wanted = ~seen.measured & seen.placed[:, None] & seen.usable
    usage = np.full((n_services, n_resources, len(seen.kinds), SLOTS_PER_DAY), np.nan)
    prior = np.full((n_services, n_resources), np.nan)
    base = np.full((len(history.nodes), n_resources, len(seen.kinds), SLOTS_PER_DAY), np.nan)
    resources, services = np.flatnonzero(wanted.any(axis=0)), np.flatnonzero(wanted.any(axis=1))
    if not len(resources):
        return PodCurves(usage, prior, base)
    free = wanted[np.ix_(services, resources)]
    units = _units(history.requests)[np.ix_(services, resources)]
    coarse = _problem(seen, services, resources, _COARSE)
    guess = _guess(coarse, units, free, seen, resources)
    noise = np.full(len(resources), _FIRST_NOISE)
    x = _fit(coarse, guess, np.maximum(guess, _typical(coarse, guess)), free, noise, _FIRST_ITERATIONS)
    noise = _noise(coarse, x)
    x = _fit(coarse, guess, np.maximum(x, _typical(coarse, x)), free, noise, _COARSE_ITERATIONS, start=x)
    noise = _noise(coarse, x)
    suggested = _rescaled(coarse, guess, x)

    fine = _problem(seen, services, resources, np.arange(SLOTS_PER_DAY))
    start = _interpolated(coarse.composition, fine.composition, x)
    centre = _at_levels(fine.composition, start, seen.shape[resources])
    x = _fit(fine, centre, np.hypot(_typical(fine, centre), _typical(fine, start)), free, noise, _ITERATIONS, start)

    parts = fine.composition
    index = np.ix_(services, resources)
    curves = np.asarray(parts.curves(x) * fine.scale.astype(np.float32)).transpose(2, 3, 0, 1)
    usage[index] = np.where(free[:, :, None, None], curves, np.nan)
    prior[index] = np.where(free, suggested * fine.scale, np.nan)
    for r in np.intersect1d(resources, (CPU, MEMORY)).tolist():
        # A process that runs needs some: the nodes have not shown it, and its request says more.
        unseen = wanted[:, r] & ~(usage[:, r].mean(axis=(1, 2)) > _NOTHING * _per_pod(seen, r))
        usage[unseen, r], prior[unseen, r] = np.nan, np.nan
    of_class = np.asarray(parts.base(x) * fine.scale).transpose(2, 3, 0, 1)[seen.node_class]
    own = np.asarray(parts.deviation(x) * fine.scale)[:, :, None, None]
    base[:, resources] = np.maximum(of_class * seen.node_size[:, None, None, None] + own, 0.0)
    return PodCurves(usage, prior, base)


def _per_pod(seen: Observations, resource: int) -> float:
    """What nodes use, shared out to all their pods: base units."""
    runs = seen.history.placements
    pods = float((runs.end - runs.first).sum()) / (seen.history.n_days * SLOTS_PER_DAY)
    return float(np.nansum(seen.level[:, resource])) / max(pods, 1.0)


def _units(requests: Floats) -> Floats:
    """Requests in the unit of each resource; unknown ones are taken for typical: (n_services, n_resources)."""
    units = request_units(requests)
    for r in range(units.shape[1]):
        known = np.isfinite(units[:, r])
        units[~known, r] = np.median(units[known, r]) if known.any() else 1.0
    return units


def _problem(seen: Observations, services: Ints, resources: Ints, slots: Ints) -> _Problem:
    column = np.full(len(seen.placed), -1)
    column[services] = np.arange(len(services))
    n_days = seen.history.n_days
    days = []
    for index in range(n_days):
        day = seen.day(index)
        keep = column[day.service] >= 0
        days.append(type(day)(day.pod[keep], column[day.service[keep]], day.node[keep], day.first[keep], day.end[keep]))
    composition = compose(days, seen.kind, slots, len(services), seen.node_class, seen.node_size)
    # (n_nodes, n_resources, n_days, n_slots) -> (n_days * n_slots * n_nodes, n_resources)
    measured = seen.beside[:, resources][..., slots].transpose(2, 3, 0, 1)
    scale = np.nanmean(seen.level[:, resources], axis=0)
    y = np.ascontiguousarray(measured.reshape(-1, len(resources)) / scale.astype(np.float32))
    shape = 0.25 + 0.75 * seen.shape[resources][:, :, slots]  # noise grows with the load, but not from nothing
    error = shape.transpose(1, 2, 0)[seen.kind][:, :, None] * (seen.level[:, resources] / scale)
    error = np.where(np.isfinite(measured), error, np.inf).astype(np.float32)
    return _Problem(composition, np.nan_to_num(y), error.reshape(-1, len(resources)), scale)


def _guess(problem: _Problem, units: Floats, free: Bools, seen: Observations, resources: Ints) -> Floats32:
    """Curves that requests suggest: the cluster's load, shared out by request and by size of node."""
    parts = problem.composition
    x = np.zeros((parts.matrix.shape[1], len(resources)), dtype=np.float32)
    shape = seen.shape[resources][:, :, _COARSE].transpose(1, 2, 0)  # (n_kinds, n_slots, n_resources)
    parts.curves(x)[...] = shape[:, :, None] * np.where(free, units, 0.0)
    parts.base(x)[...] = shape[:, :, None]
    known = np.isfinite(problem.relative_error)
    load = np.where(known, problem.y, 0.0).sum(axis=0)
    for view, share in ((parts.curves, _POD_SHARE), (parts.base, 1 - _POD_SHARE)):
        part, alone = view(x), np.zeros_like(x)
        view(alone)[...] = part
        covered = np.where(known, parts.matrix @ alone, 0.0).sum(axis=0)
        part *= np.where(covered > 0, share * np.maximum(load, 0.0) / np.where(covered > 0, covered, 1.0), 0.0)
    return x


def _fit(
    problem: _Problem,
    prior: Floats32,
    spread: Floats32,
    free: Bools,
    noise: Floats,
    iterations: int,
    start: Floats32 | None = None,
) -> Floats32:
    """spread: what one standard deviation of 1 means in each column, > 0."""
    parts = problem.composition
    ridge, step, apart = (np.zeros_like(prior) for _ in range(3))
    scale = 1 / np.maximum(spread, 1e-9) ** 2
    coarseness = SLOTS_PER_DAY / parts.n_slots
    for view, own, between in ((parts.curves, _PRIOR_SPREAD, _STEP), (parts.base, _BASE_SPREAD, _BASE_STEP)):
        view(ridge)[...] = view(scale) / own**2
        view(step)[...] = view(scale) / (between * coarseness) ** 2
        view(apart)[...] = view(scale) / _APART**2
    parts.deviation(ridge)[...] = parts.deviation(scale) / _DEVIATION**2
    may_differ, signed = np.ones(prior.shape, dtype=np.bool_), np.zeros(prior.shape, dtype=np.bool_)
    parts.curves(may_differ)[...] = free  # type: ignore[arg-type]
    parts.deviation(signed)[...] = True  # type: ignore[arg-type]
    centre = prior.copy()
    parts.deviation(centre)[...] = 0.0
    precision = (1 / (problem.relative_error * noise.astype(np.float32)) ** 2).astype(np.float32)
    penalties = Penalties(centre, ridge, step, apart, may_differ, signed)
    return solve(parts, Rows(problem.y, precision), penalties, prior if start is None else start, iterations=iterations)


def _typical(problem: _Problem, x: Floats32) -> Floats32:
    """Each column's own scale: the mean of its curve, of a node its level; never 0."""
    parts = problem.composition
    out = np.empty_like(x)
    for view in (parts.curves, parts.base):
        level = view(x).mean(axis=(0, 1))
        some = level[level > 0]
        view(out)[...] = np.maximum(level, 0.05 * np.median(some) if len(some) else 1.0)
    quiet = problem.relative_error.reshape(-1, parts.n_nodes, x.shape[1])
    level = np.where(np.isfinite(quiet), quiet, 0.0).max(axis=0)
    parts.deviation(out)[...] = np.where(level > 0, level, 1.0)
    return out


def _noise(problem: _Problem, x: Floats32) -> Floats:
    """Relative standard error of a measurement, from the median residual: (n_resources,)."""
    with np.errstate(invalid="ignore"):
        residual = np.abs(problem.composition.matrix @ x - problem.y) / problem.relative_error
    known = np.isfinite(problem.relative_error)
    middle = [np.median(residual[known[:, r], r]) if known[:, r].any() else 1.0 for r in range(x.shape[1])]
    return np.maximum(1.4826 * np.array(middle, dtype=np.float64), _LEAST_NOISE)


def _rescaled(problem: _Problem, guess: Floats32, x: Floats32) -> Floats:
    """The levels that requests suggest once the pods' share of the load is known: (n_services, n_resources)."""
    parts = problem.composition
    n_pods = np.asarray(parts.matrix.sum(axis=0)).ravel().astype(np.float64)
    pods = parts.curves(n_pods[:, None])  # (n_kinds, n_slots, n_services, 1)
    fitted, suggested = (pods * parts.curves(x)).sum(axis=(0, 1, 2)), (pods * parts.curves(guess)).sum(axis=(0, 1, 2))
    share = fitted / np.where(suggested > 0, suggested, 1.0)
    return np.asarray(parts.curves(guess).mean(axis=(0, 1)) * share, dtype=np.float64)


def _interpolated(coarse: Composition, fine: Composition, x: Floats32) -> Floats32:
    """Columns of the coarse problem, linearly in between slots, round midnight, as columns of the fine one."""
    out = np.zeros((fine.matrix.shape[1], x.shape[1]), dtype=np.float32)
    every = fine.n_slots // coarse.n_slots
    position = np.arange(fine.n_slots)
    before, share = position // every, (position % every / every).astype(np.float32)[:, None, None]
    after = (before + 1) % coarse.n_slots
    for source, target in ((coarse.curves(x), fine.curves(out)), (coarse.base(x), fine.base(out))):
        target[...] = source[:, before] * (1 - share) + source[:, after] * share
    fine.deviation(out)[...] = coarse.deviation(x)
    return out


def _at_levels(parts: Composition, x: Floats32, shape: Floats) -> Floats32:
    """Every service and class at its own level in the cluster's daily shape."""
    out = np.zeros_like(x)
    daily = shape.transpose(1, 2, 0)[:, :, None]  # (n_kinds, n_slots, 1, n_resources)
    for view in (parts.curves, parts.base):
        view(out)[...] = view(x).mean(axis=(0, 1)) / daily.mean(axis=(0, 1)) * daily
    return out
