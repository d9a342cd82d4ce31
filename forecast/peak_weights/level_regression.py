"""A regression with one scale for each known curve: what nodes feel of services, what every pod costs, and how well
each is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY, DayType
from forecast.peak_weights.observations import Observations

_BLOCK_SLOTS = 8

PARTS = SLOTS_PER_DAY // _BLOCK_SLOTS
"""Parts of the day, of one block each."""

_HUBER = 2.0
_ITERATIONS = 120

REPLICATES = 32
_PRIOR_SPREAD = 1.0

_NODE_SPREAD = 0.1
"""Lasting deviations of single nodes, as a share of their level."""

_OPEN = 10.0
"""Spread of what is not drawn anywhere: bases and costs, in units of a typical level."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of pods cut at the borders of blocks. Rows are block * n_nodes + node.

    Entry i adds the curve of `service` from slot `first` to `end` to `row`.
    """

    row: Ints
    service: Ints
    first: Ints
    end: Ints


def block_structure(seen: Observations) -> Blocks:
    """The entries of z, for all resources alike."""
    runs = seen.history.placements
    begin, n = runs.first // _BLOCK_SLOTS, -(-runs.end // _BLOCK_SLOTS) - runs.first // _BLOCK_SLOTS
    n = np.where(runs.end > runs.first, n, 0)
    total = int(n.sum())
    block = np.repeat(begin, n) + np.arange(total) - np.repeat(np.cumsum(n) - n, n)
    first = np.maximum(np.repeat(runs.first, n), block * _BLOCK_SLOTS)
    end = np.minimum(np.repeat(runs.end, n), (block + 1) * _BLOCK_SLOTS)
    return Blocks(block * len(seen.node_class) + np.repeat(runs.node, n), np.repeat(runs.service, n), first, end)


@dataclass(frozen=True, slots=True)
class LevelRegression:
    """The regression of one resource, all arrays in units of a node's typical level.

    z       : (n_rows, n_columns) scales, then bases, then costs of pods. The first n_services scales are those of
              measured services, then follow 12 for each service: parts of workdays, parts of other days
    y       : (n_rows,) less the mean of its base column, and weight (n_rows,), 0 = not measured
    node    : (n_rows,)
    mass    : (n_services, 12) how much of its load each scale of a service holds, sum 1; 0 for measured ones
    n_bases, n_costs : columns of bases and costs; with costs, every node has a column of its own behind them
    unit    : base units of 1
    """

    z: sp.csr_matrix
    y: Floats32
    weight: Floats32
    node: Ints
    mass: Floats32
    n_bases: int
    n_costs: int
    unit: float

    @property
    def n_services(self) -> int:
        return len(self.mass)

    @property
    def n_scales(self) -> int:
        return self.n_services * (1 + 2 * PARTS)

    def levels(self, x: Floats32) -> Floats32:
        """The scale of each service's whole curve: (n_services, n_replicates)."""
        n = self.n_services
        parts = x[n : self.n_scales].reshape(n, 2 * PARTS, -1)
        of_parts = np.einsum("sp,spb->sb", self.mass, parts)
        from_nodes = self.mass.sum(axis=1, keepdims=True) > 0
        return np.where(from_nodes, of_parts, x[:n])

    def solve(self, ridge: Floats32, prior: Floats32, counts: Floats32, *, robust: AnyFloats | None = None) -> Floats32:
        """Columns for each column of counts: (n_columns, n_replicates). Conjugate gradients, all replicates at once.

        ridge  : (n_columns,) precision of the prior
        prior  : (n_columns, n_replicates)
        counts : (n_nodes, n_replicates) weight of each node
        robust : (n_rows,) a further weight of each row
        """
        weight = self.weight if robust is None else self.weight * robust
        rows = weight[:, None].astype(np.float32) * counts[self.node]
        # Of the 13 scales of a service most have no entry: these keep their prior.
        used, place = np.unique(self.z.indices, return_inverse=True)
        z = sp.csr_matrix((self.z.data, place.ravel(), self.z.indptr), shape=(self.z.shape[0], len(used)))
        strength, x = ridge[used, None], prior[used]
        transposed = z.T
        squared = z.copy()
        squared.data **= 2
        inverse = 1 / (squared.T @ rows + strength)
        residual = transposed @ (rows * (self.y[:, None] - z @ x))
        direction = ahead = inverse * residual
        size = (residual * ahead).sum(axis=0)
        first = np.maximum(size, np.finfo(np.float32).tiny)
        for _ in range(_ITERATIONS):
            image = transposed @ (rows * (z @ direction)) + strength * direction
            curvature = (direction * image).sum(axis=0)
            step = np.where(curvature > 0, size / np.where(curvature > 0, curvature, 1.0), 0.0)
            x += step * direction
            residual = residual - step * image
            ahead = inverse * residual
            new = (residual * ahead).sum(axis=0)
            direction = ahead + np.where(size > 0, new / np.where(size > 0, size, 1.0), 0.0) * direction
            size = new
            if (size <= 1e-7 * first).all():
                break
        found = prior.copy()
        found[used] = x
        return found

    def residual(self, x: AnyFloats) -> Floats32:
        """y - z x for one column vector, NaN where nothing was measured: (n_rows,)."""
        return np.where(self.weight > 0, self.y - self.z @ x.astype(np.float32), np.nan).astype(np.float32)

    def robust_weights(self, x: AnyFloats) -> Floats32:
        """Huber's weights of the rows: 1, less for residuals beyond two standard deviations."""
        relative = np.abs(self.residual(x)) * np.sqrt(self.weight)
        known = np.isfinite(relative)
        noise = 1.4826 * float(np.median(relative[known])) if known.any() else 1.0
        limit = _HUBER * max(noise, 1e-6)
        return np.where(known & (relative > limit), limit / np.where(known & (relative > 0), relative, 1.0), 1.0)


def build(
    seen: Observations, blocks: Blocks, curves: AnyFloats, resource: int, measured: Bools, with_cost: bool
) -> LevelRegression:
    """The regression of one resource.

    curves    : (n_services, n_days, 48) usage of one pod, finite; 0 = takes no part
    measured  : (n_services,) whether pods of it were measured
    with_cost : whether pods may cost a node something besides
    """
    n_services, n_days = curves.shape[:2]
    n_nodes, n_blocks = len(seen.node_class), n_days * PARTS
    level = np.nan_to_num(seen.level[:, resource])
    unit = float(np.mean(level[level > 0]))
    sums = np.zeros((n_services, n_days * SLOTS_PER_DAY + 1))
    np.cumsum(curves.reshape(n_services, -1), axis=1, dtype=np.float64, out=sums[:, 1:])
    value = (sums[blocks.service, blocks.end] - sums[blocks.service, blocks.first]) / (_BLOCK_SLOTS * unit)
    weekend = np.array([kind is not DayType.WORKDAY for kind in seen.kinds])[seen.kind]  # (n_days,)
    block = blocks.row // n_nodes
    part = block % PARTS + PARTS * weekend[block // PARTS]
    of_part = n_services + blocks.service * 2 * PARTS + part
    row, data = [blocks.row], [value]
    column = [np.where(measured[blocks.service], blocks.service, of_part)]
    mass = np.bincount(of_part - n_services, weights=value, minlength=n_services * 2 * PARTS).reshape(n_services, -1)
    mass = np.where(measured[:, None], 0.0, mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-30))

    n_scales = n_services * (1 + 2 * PARTS)
    index = np.arange(n_blocks * n_nodes)
    block, node = np.divmod(index, n_nodes)
    n_classes = int(seen.node_class.max()) + 1
    # What all nodes do at the same time must not pass for what pods do that come with the evening: where pods may have
    # a cost, the base of a class is free in every block, and only differences between nodes carry information.
    period = block if with_cost else weekend[block // PARTS] * PARTS + block % PARTS
    n_bases = (n_blocks if with_cost else 2 * PARTS) * n_classes
    of_base = period * n_classes + seen.node_class[node]
    row.append(index)
    column.append(n_scales + of_base)
    data.append(seen.node_size[node])
    if with_cost:
        pods = np.bincount(blocks.row, weights=(blocks.end - blocks.first) / _BLOCK_SLOTS, minlength=len(index))
        row.append(index)
        column.append(n_scales + n_bases + block % PARTS)
        data.append(_centred(pods.astype(np.float64), of_base, np.ones(len(index), dtype=np.bool_)))
        # What a node always does must not pass for what its pods cost: only pods that come and go show it.
        row.append(index)
        column.append(n_scales + n_bases + PARTS + node)
        data.append(level[node] / unit)
    shape = (len(index), n_scales + n_bases + with_cost * (PARTS + n_nodes))
    z = sp.csr_matrix(
        (np.concatenate(data).astype(np.float32), (np.concatenate(row), np.concatenate(column))), shape=shape
    )
    z.sum_duplicates()

    y, known = _block_means(seen.beside[:, resource])
    shape_of_day = seen.shape[resource][seen.kind].reshape(n_blocks, _BLOCK_SLOTS).mean(axis=1)
    error = (level / unit)[None] * (0.25 + 0.75 * shape_of_day)[:, None]
    weight = np.where(known & (error > 0), 1 / np.maximum(error, 1e-9) ** 2, 0.0)
    return LevelRegression(
        z,
        _centred(y.ravel() / unit, of_base, known.ravel()).astype(np.float32),
        weight.ravel().astype(np.float32),
        node,
        mass.astype(np.float32),
        n_bases,
        with_cost * PARTS,
        unit,
    )


def _centred(values: Floats, group: Ints, known: Bools) -> Floats:
    """Values less the mean of their group, 0 where unknown.

    The base columns could take the means up as well, but pods and base hardly differ in direction before, and conjugate
    gradients would need hundreds of steps to separate them.
    """
    n = int(group.max(initial=0)) + 1
    total = np.bincount(group[known], weights=values[known], minlength=n)
    mean = total / np.maximum(np.bincount(group[known], minlength=n), 1)
    return np.where(known, values - mean[group], 0.0)


def _block_means(beside: AnyFloats) -> tuple[Floats, Bools]:
    """(n_nodes, n_days, 48) -> mean per block and whether half of it was measured, both (n_blocks, n_nodes)."""
    slots = beside.reshape(len(beside), -1, _BLOCK_SLOTS)
    measured = np.isfinite(slots)
    count = measured.sum(axis=2)
    mean = np.where(measured, slots, 0.0).sum(axis=2, dtype=np.float64) / np.maximum(count, 1)
    return mean.T, (count * 2 >= _BLOCK_SLOTS).T


# How well each level is known: bootstrap over nodes of the regression in `level_regression`.
#
# Standard errors: replicates in which every node counts as often as it was drawn (Efron & Tibshirani 1993), and in
# which the prior is drawn anew as well (perturb-and-MAP, Papandreou & Yuille 2010). What the data determine varies with
# the nodes drawn; what they leave open varies with the prior, whose spread is its full 100 %. So services are not
# mistaken for known because a prior shared their load out.


def node_draws(names: tuple[str, ...], n_replicates: int, rng: np.random.Generator) -> Floats32:
    """How often each node counts in each replicate, (n_nodes, n_replicates); the first counts all once.

    Drawn by the order of the names, so that the order of the nodes does not matter.
    """
    n_nodes = len(names)
    drawn = rng.multinomial(n_nodes, np.full(n_nodes, 1 / n_nodes), size=n_replicates).T
    out = np.empty((n_nodes, n_replicates), dtype=np.float32)
    out[np.argsort(np.array(names))] = drawn
    out[:, 0] = 1.0
    return out


def fit_levels(fit: LevelRegression, draws: Floats32, jitter: Floats32) -> tuple[Floats32, Floats32]:
    """Replicates of all columns, the first being the estimate, and the robust weights of the rows.

    draws    : (n_nodes, n_replicates) from `node_draws`
    jitter   : (n_services, n_replicates) standard normal, 0 in the first column
    """
    n_columns = fit.z.shape[1]
    everyone = draws[:, :1]
    prior = np.zeros((n_columns, draws.shape[1]), dtype=np.float32)
    of_service = np.concatenate([np.arange(fit.n_services), np.repeat(np.arange(fit.n_services), 2 * PARTS)])
    # Parts of a day do not lend each other their prior's luck: all move together.
    prior[fit.n_services : fit.n_scales] = 1.0
    known = fit.weight > 0
    noise = 0.05**2
    robust = np.ones(len(fit.y), dtype=np.float32)
    x = prior[:, :1]
    for _ in range(2):
        ridge = ridges(fit, noise)
        x = fit.solve(ridge, prior[:, :1], everyone, robust=robust)
        relative = np.abs(fit.residual(x[:, 0])[known]) * np.sqrt(fit.weight[known])
        noise = max((1.4826 * float(np.median(relative))) ** 2, 1e-8) if known.any() else noise
        robust = fit.robust_weights(x[:, 0])
    prior[: fit.n_scales] += _PRIOR_SPREAD * jitter[of_service]
    return fit.solve(ridges(fit, noise), prior, draws, robust=robust), robust


def ridges(fit: LevelRegression, noise: float, spread: AnyFloats | float = _PRIOR_SPREAD) -> Floats32:
    """Precision of the prior of each column, in units of the rows' noise variance: (n_columns,).

    spread : of the prior of measured services, a number or (n_services,)
    """
    out = np.empty(fit.z.shape[1], dtype=np.float32)
    out[: fit.n_scales] = noise / _PRIOR_SPREAD**2
    out[: fit.n_services] = noise / np.maximum(spread, 1e-3) ** 2
    out[fit.n_scales :] = noise / _OPEN**2
    out[fit.n_scales + fit.n_bases + fit.n_costs :] = noise / _NODE_SPREAD**2
    return out
