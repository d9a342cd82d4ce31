"""How scarce each model of cards is: how much pods that can only do with some models want of it. Pure.

Demand that accepts several models is parted among them by their supply S:

    E[m] = sum over demands d of  wanted[d] * S[m] / sum of S over what d accepts        of what is wanted at all
    N[m] = the same of what is wanted and has not got a card

    scarcity[m] = min(1, max(E[m] / S[m], N[m] / F[m]))                                  F: the free part of S

The first says how much of the model is for such pods in the long run, the second how much of what is free now. Demand
that accepts every model makes none of them scarce, and is not to be passed in.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats, Ints

HYSTERESIS = 0.05
"""By which scarcity must leave a class before the class changes (a fifth of a band, if that is less): else every pod
might."""


def exclusive_demand(accepts: Bools, amounts: Floats, supply: Floats) -> Floats:
    """What is wanted of each model.

    accepts : (n_demands, n_models) models that a demand can do with
    amounts : (n_demands,) wanted, in the unit of `supply`, >= 0; no more counts than there is of what it accepts
    supply  : (n_models,) >= 0
    Returns (n_models,).
    """
    of_each = np.where(accepts, supply, 0.0)  # (n_demands, n_models)
    within_reach = of_each.sum(axis=1)  # (n_demands,)
    share = np.minimum(amounts, within_reach) / np.where(within_reach > 0, within_reach, 1.0)
    return np.asarray(share @ of_each)  # (n_models,)


def scarcities(wanted: Floats, unserved: Floats, supply: Floats, free: Floats) -> Floats:
    """(n_models,) in 0..1; all arguments (n_models,) in one unit: E, N, S and F of the formula."""
    in_all = np.divide(wanted, supply, out=np.zeros_like(supply), where=supply > 0)
    # Where nothing is free any pod that waits for it says enough; where there is no card nothing is scarce.
    full = np.where((unserved > 0) & (supply > 0), 1.0, 0.0)
    of_free = np.divide(unserved, free, out=full, where=free > 0)
    return np.asarray(np.clip(np.maximum(in_all, of_free), 0.0, 1.0))


def classes(scarcity: Floats, before: Ints, band: float) -> Ints:
    """(n_models,) band of each; before: (n_models,) the last answer, -1 = none; kept where it nearly fits."""
    now = np.floor(scarcity / band + 1e-9).astype(np.int64)
    slack = min(HYSTERESIS, 0.2 * band)
    still = (before >= 0) & (scarcity >= before * band - slack) & (scarcity < (before + 1) * band + slack)
    return np.asarray(np.where(still, before, now))


def rare(scarcity: Floats, before: Bools, rare_from: float, least: float) -> Bools:
    """(n_models,) whether each is rare; one that was is until it is clearly less scarce.

    least : the least of the scarcities: as scarce as that is not rare, since pods that do not ask have to go somewhere
    """
    slack = np.where(before, HYSTERESIS, 0.0)
    return np.asarray((scarcity >= rare_from - slack) & (scarcity > least + HYSTERESIS - slack))


def pressures(used: Floats, waiting: Floats, supply: Floats) -> Floats:
    """(n_models,) share of the supply that is used, or wanted by pods that wait and can do with few models; a model
    without a card: infinite. All arguments (n_models,) in one unit."""
    return np.divide(used + waiting, supply, out=np.full_like(supply, np.inf), where=supply > 0)
