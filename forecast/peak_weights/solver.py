"""Non-negative robust regression with smooth curves, for all slots and resources at once.

    minimise   sum_rows huber((A x - y) / sigma) + 1/2 sum_columns (x - prior)^2 / sd^2
             + 1/2 sum_slots (x[h+1] - x[h])^2 / step^2 + 1/2 sum_kinds (x[k] - x[0])^2 / apart^2,     x >= 0

FISTA (Beck & Teboulle 2009) with the adaptive restart of O'Donoghue & Candès 2015, in the diagonal metric
P = A' V (A 1) + penalties: the row sums of the Hessian bound it (Gershgorin; Pock & Chambolle 2011), so P^-1 is a safe
step for every unknown. Huber's loss is smooth with the same bound, so single outliers need no outer loop.
All resources share A: a step is two products of a sparse matrix with n_resources columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats32
from forecast.peak_weights.pods_on_nodes import Composition

_HUBER = 2.0
"""Residuals beyond this many standard deviations pull with constant force; 1.3 would be 95 % efficient on normal
errors (Huber 1981), 2.0 is 99 %."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What was measured: y (n_rows, n_resources) and its precision 1 / sigma^2, 0 where nothing was measured."""

    y: Floats32
    precision: Floats32


@dataclass(frozen=True, slots=True)
class Penalties:
    """What is believed beforehand, all in precisions (1 / variance); arrays like the columns (n_columns, n_resources).

    prior, ridge : value a column is drawn to, and how strongly
    slots        : how strongly neighbouring slots are tied, round midnight
    kinds        : how strongly other kinds of day are tied to the first
    free         : columns that may differ from 0
    signed       : columns that may be negative
    """

    prior: Floats32
    ridge: Floats32
    slots: Floats32
    kinds: Floats32
    free: Bools
    signed: Bools


def solve(
    composition: Composition,
    rows: Rows,
    penalties: Penalties,
    start: Floats32,
    *,
    iterations: int,
    tolerance: float = 1e-4,
) -> Floats32:
    """The minimiser: (n_columns, n_resources). Stops when no resource moves by more than `tolerance` of itself."""
    matrix, transposed = composition.matrix, composition.matrix.T
    root = np.sqrt(rows.precision)
    curvature = transposed @ (rows.precision * np.asarray(matrix.sum(axis=1), dtype=np.float32))
    curvature += penalties.ridge + 4 * penalties.slots + _kinds_curvature(composition, penalties)
    step = np.where(penalties.free, 1 / np.maximum(curvature, np.finfo(np.float32).tiny), 0).astype(np.float32)
    lower = np.where(penalties.signed, -np.inf, 0).astype(np.float32)

    def gradient(x: Floats32) -> Floats32:
        pull = matrix @ x
        pull -= rows.y
        pull *= root
        np.clip(pull, -_HUBER, _HUBER, out=pull)
        pull *= root
        out: Floats32 = transposed @ pull
        out += penalties.ridge * (x - penalties.prior)
        _add_slots(composition, penalties.slots, x, out)
        _add_kinds(composition, penalties.kinds, x, out)
        return out

    return _fista(gradient, step, lower, start, iterations, tolerance)


def _fista(
    gradient: Callable[[Floats32], Floats32],
    step: Floats32,
    lower: Floats32,
    start: Floats32,
    iterations: int,
    tolerance: float,
) -> Floats32:
    x = ahead = np.where(step > 0, np.maximum(start, lower), 0).astype(np.float32)
    metric = np.where(step > 0, 1 / np.where(step > 0, step, 1), 0).astype(np.float32)
    momentum = np.ones(x.shape[1])
    for _ in range(iterations):
        new = np.maximum(ahead - step * gradient(ahead), lower)
        moved = new - x
        # Restart, per resource, when the step no longer goes the way the momentum goes.
        against = np.einsum("ij,ij,ij->j", metric, ahead - new, moved) > 0
        momentum[against] = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        speed = np.where(against, 0.0, (momentum - 1) / following)
        ahead = new + speed.astype(np.float32) * moved
        far = np.einsum("ij,ij,ij->j", metric, moved, moved)
        size = np.einsum("ij,ij,ij->j", metric, new, new)
        x, momentum = new, following
        if (far <= tolerance**2 * size).all():
            break
    return x


def _parts(composition: Composition, *arrays: Floats32) -> list[tuple[Floats32, ...]]:
    """The curves over (kinds, slots) of services and of node classes, as views of each array."""
    of_services = tuple(composition.curves(a) for a in arrays)
    of_classes = tuple(composition.base(a) for a in arrays)
    return [of_services, of_classes]


def _add_slots(composition: Composition, strength: Floats32, x: Floats32, out: Floats32) -> None:
    for weight, curve, target in _parts(composition, strength, x, out):
        if curve.shape[1] > 1:
            target += weight * (2 * curve - np.roll(curve, 1, axis=1) - np.roll(curve, -1, axis=1))


def _add_kinds(composition: Composition, strength: Floats32, x: Floats32, out: Floats32) -> None:
    for weight, curve, target in _parts(composition, strength, x, out):
        apart = weight[1:] * (curve[1:] - curve[:1])
        target[1:] += apart
        target[0] -= apart.sum(axis=0)


def _kinds_curvature(composition: Composition, penalties: Penalties) -> Floats32:
    out = np.zeros_like(penalties.kinds)
    for weight, target in _parts(composition, penalties.kinds, out):
        target[1:] += 2 * weight[1:]
        target[0] += 2 * weight[1:].sum(axis=0)
    return out
