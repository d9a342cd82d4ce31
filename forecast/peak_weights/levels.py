"""How well each level is known: bootstrap over nodes of the regression in `level_regression`.

Standard errors: replicates in which every node counts as often as it was drawn (Efron & Tibshirani 1993), and in which
the prior is drawn anew as well (perturb-and-MAP, Papandreou & Yuille 2010). What the data determine varies with the
nodes drawn; what they leave open varies with the prior, whose spread is its full 100 %. So services are not mistaken
for known because a prior shared their load out.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats32
from forecast.peak_weights.level_regression import PARTS, LevelRegression

REPLICATES = 32
_PRIOR_SPREAD = 1.0
_NODE_SPREAD = 0.1
"""Lasting deviations of single nodes, as a share of their level."""

_OPEN = 10.0
"""Spread of what is not drawn anywhere: bases and costs, in units of a typical level."""


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
