"""Whether a quota admits a pod: never above max, and beyond min only what others lend. Pure.

    wanted(quota)     = min(max, max(used + waiting, expected))     a parent: the sum of its children and its own
    committed(quota)  = max(used, min(guaranteed, wanted))          what it does not lend
                        a parent: at least the sum of its children and its own; guaranteed, if it lends nothing
    pod within min    : admitted, up to the max of the quota and all above it
    pod beyond min    : what committed grows by has to fit into the parent's min, else into the one above, ...,
                        at the top into the pool: all guarantees together, or what the nodes have

What an owner waits for, or is expected to need before the borrower ends, is not lent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from base.arrays import Ints
from tenants.quota_tree import NO_QUOTA, QuotaTree


class Bound(Enum):
    """What a pod would pass."""

    MAX = "max"
    LENT = "lent"


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a pod is not admitted.

    row      : quota whose bound it is: the pod's own or one above it; NO_QUOTA = the pool of all
    resource : column
    held     : units that are used of the bound, or committed
    bound    : units
    asked    : units of the pod
    """

    kind: Bound
    row: int
    resource: int
    held: int
    bound: int
    asked: int


@dataclass(frozen=True, slots=True)
class Use:
    """What is used and waited for, (n_quotas, n_resources) units each: see QuotaLedger.

    expected : what owners are expected to need while the borrower runs; None = nothing is expected of them
    pool     : (n_resources,) what may be used in all; None = all guarantees together
    """

    direct: Ints
    used: Ints
    waiting: Ints
    expected: Ints | None = None
    pool: Ints | None = None


def committed(tree: QuotaTree, use: Use) -> Ints:
    """(n_quotas, n_resources) units that quotas do not lend, those of the quotas below them included."""
    leaf = tree.is_leaf[:, None]
    own = np.where(leaf, use.used, use.direct) + use.waiting
    if use.expected is not None:
        own = np.maximum(own, np.where(leaf, use.expected, 0))
    wanted, held = own, np.where(leaf, use.used, use.direct)
    deepest = int(tree.depth.max(initial=0))
    for depth in range(deepest, -1, -1):
        rows = np.flatnonzero(tree.depth == depth) if deepest else slice(None)
        wanted[rows] = np.minimum(wanted[rows], np.maximum(tree.most[rows], use.used[rows]))
        keeps = np.where(tree.lends[rows, None], np.minimum(tree.guaranteed[rows], wanted[rows]), tree.guaranteed[rows])
        held[rows] = np.maximum(held[rows], keeps)
        if depth:
            np.add.at(wanted, tree.parent[rows], wanted[rows])
            np.add.at(held, tree.parent[rows], held[rows])
    return held


def denial(
    tree: QuotaTree, use: Use, row: int, asked: Sequence[int], *, held_back: Ints | None = None
) -> Denial | None:
    """Return why a pod of the quota of a row is not admitted; None = it is.

    asked     : (n_resources,) units
    held_back : `committed` of these, where it is known
    """
    columns = [at for at, units in enumerate(asked) if units > 0]
    for above in tree.path(row):
        for at in columns:
            if use.used[above, at] + asked[at] > tree.most[above, at]:
                return Denial(Bound.MAX, above, at, int(use.used[above, at]), int(tree.most[above, at]), asked[at])
    is_leaf = bool(tree.is_leaf[row])
    if is_leaf and all(use.used[row, at] + asked[at] <= tree.guaranteed[row, at] for at in columns):
        return None
    held_back = committed(tree, use) if held_back is None else held_back
    growth = {at: asked[at] for at in columns}
    if is_leaf:
        growth = {at: max(0, int(use.used[row, at]) + asked[at] - int(held_back[row, at])) for at in columns}
        growth = {at: units for at, units in growth.items() if units}
    # A pod of a quota that has others below it borrows from these.
    for above in tree.path(row)[1 if is_leaf else 0 :]:
        below = use.direct[above] + held_back[tree.parent == above].sum(axis=0)
        growth = {
            at: int(below[at]) + units for at, units in growth.items() if below[at] + units > tree.guaranteed[above, at]
        }
        growth = {at: total - int(held_back[above, at]) for at, total in growth.items() if total > held_back[above, at]}
    if not growth:
        return None
    at_top = tree.parent == NO_QUOTA
    pool = tree.guaranteed[at_top].sum(axis=0) if use.pool is None else use.pool
    for at, units in growth.items():
        held = int(held_back[at_top, at].sum())
        if held + units > pool[at]:
            return Denial(Bound.LENT, NO_QUOTA, at, held, int(pool[at]), asked[at])
    return None


def most_admitted(
    tree: QuotaTree, use: Use, row: int, asked: Sequence[int], n_pods: int, *, held_back: Ints | None = None
) -> int:
    """Return how many of `n_pods` like pods are admitted together."""
    fits, fails = 0, n_pods + 1
    while fails - fits > 1:
        tried = n_pods if fails > n_pods and not fits else (fits + fails) // 2
        together = [tried * units for units in asked]
        if denial(tree, use, row, together, held_back=held_back) is None:
            fits = tried
        else:
            fails = tried
    return fits
