"""What each tenant has, lends, owes and may still borrow, now and hour by hour: the figures, and how a running process
copies them under its lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from base.arrays import Ints
from cluster.live_tables import LiveTables
from tenants.elastic_quota import COMMON
from tenants.expected_need import ExpectedNeed
from tenants.need import with_parents
from tenants.quota_admission import Use, committed
from tenants.quota_amounts import in_base_units
from tenants.quota_tree import BOUNDLESS, CARDS, NO_QUOTA, QuotaTree
from tenants.quotas import Quotas

SLOTS_OF_HOUR = 2

LOAN_SECONDS = 3600.0
"""What a tenant may still borrow is said of a pod that runs for an hour."""


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """Amounts in cores, bytes, bytes a second, cards or counts.

    most                : None = no bound
    expected, will_lend : by hour, the one under way first; empty = there is no forecast
    """

    resource: str
    least: float
    most: float | None
    used: float
    waiting: float
    borrowed: float
    lent: float
    owed: float
    may_borrow: float
    expected: tuple[float, ...] = ()
    will_lend: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TenantReport:
    """
    name    : as sentences have it
    parent  : name of the tenant above, '' = none
    running : pods of the quota itself that have a node, or are about to get one
    waiting : pods of the quota itself that wait
    lends   : whether others may use its idle min
    resources : that it names or uses, and those that all nodes have
    """

    name: str
    namespace: str
    quota: str
    parent: str
    weight: float
    lends: bool
    running: int
    waiting: int
    resources: tuple[ResourceReport, ...]


@dataclass(frozen=True, slots=True)
class TenantsReport:
    """
    made      : unix seconds
    tenants   : parents before their children
    problems  : one sentence for each thing of the quotas that is not as it should be
    from_hour : unix seconds at which the first hour of the curves began; None = there is no forecast
    """

    made: float
    tenants: tuple[TenantReport, ...] = ()
    problems: tuple[str, ...] = ()
    from_hour: float | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """(n_quotas, n_resources) units each; see above."""

    borrowed: Ints
    lent: Ints
    owed: Ints
    may_borrow: Ints


def balance(tree: QuotaTree, use: Use) -> Balance:
    """Return what quotas have from each other. use.pool: see Use."""
    at_top = tree.parent == NO_QUOTA
    pool = tree.guaranteed[at_top].sum(axis=0) if use.pool is None else use.pool
    idle = np.maximum(tree.guaranteed - use.used, 0)
    free = np.maximum(pool - use.used[at_top].sum(axis=0), 0)
    return Balance(
        borrowed=np.maximum(use.used - tree.guaranteed, 0),
        lent=_lent(tree, use, idle, pool),
        owed=np.maximum(idle - free, 0),
        may_borrow=_may_borrow(tree, use, pool),
    )


def tenants_report(
    tree: QuotaTree,
    use: Use,
    *,
    made: float,
    running: Ints,
    waiting: Ints,
    need: Ints | None = None,
    start: float | None = None,
    n_hours: int = 24,
) -> TenantsReport:
    """Return the report.

    running, waiting : (n_quotas,) pods of the quotas themselves
    need             : (n_steps, n_quotas, n_resources) by half hour from `start` (unix seconds) on; None = no forecast
    """
    found = balance(tree, use)
    by_hour = None if need is None else _by_hour(need, n_hours)
    waits = with_parents(tree, use.waiting)
    shown = (tree.guaranteed > 0) | (tree.most < BOUNDLESS) | (use.used > 0) | (waits > 0)
    shown |= np.array([name == CARDS or name in COMMON for name in tree.resources], dtype=bool)
    if need is not None:
        shown |= (need > 0).any(axis=0)
    tenants = []
    for row, quota in enumerate(tree.quotas):
        up = int(tree.parent[row])
        resources = []
        for at in np.flatnonzero(shown[row]).tolist():
            name = tree.resources[at]
            amount = partial(in_base_units, name)
            least, most = int(tree.guaranteed[row, at]), int(tree.most[row, at])
            hours: Sequence[int] = () if by_hour is None else by_hour[:, row, at].tolist()
            resources.append(
                ResourceReport(
                    resource=name,
                    least=amount(least),
                    most=None if most >= BOUNDLESS else amount(most),
                    used=amount(int(use.used[row, at])),
                    waiting=amount(int(waits[row, at])),
                    borrowed=amount(int(found.borrowed[row, at])),
                    lent=amount(int(found.lent[row, at])),
                    owed=amount(int(found.owed[row, at])),
                    may_borrow=amount(int(found.may_borrow[row, at])),
                    expected=tuple(amount(one) for one in hours),
                    will_lend=tuple(amount(max(0, least - one) if tree.lends[row] else 0) for one in hours),
                )
            )
        tenants.append(
            TenantReport(
                name=tree.name(row),
                namespace=quota.namespace,
                quota=quota.name,
                parent="" if up == NO_QUOTA else tree.name(up),
                weight=float(tree.weight[row]),
                lends=bool(tree.lends[row]),
                running=int(running[row]),
                waiting=int(waiting[row]),
                resources=tuple(resources),
            )
        )
    return TenantsReport(made, tuple(tenants), tree.problems, None if by_hour is None else start)


# Inside


def _by_hour(need: Ints, n_hours: int) -> Ints:
    """(n_hours or fewer, n_quotas, n_resources) the higher of the two half hours."""
    n = min(n_hours, len(need) // SLOTS_OF_HOUR)
    whole = need[: n * SLOTS_OF_HOUR]
    return np.asarray(whole.reshape(n, SLOTS_OF_HOUR, *need.shape[1:]).max(axis=1))


def _lent(tree: QuotaTree, use: Use, idle: Ints, pool: Ints) -> Ints:
    """From the top down: what a parent lends is lent by its children, in addition to what these lend each other."""
    lent = np.zeros_like(idle)
    over = np.maximum(use.used - tree.guaranteed, 0)
    for parent in (NO_QUOTA, *np.flatnonzero(~tree.is_leaf).tolist()):
        rows = np.flatnonzero(tree.parent == parent)
        taken, bound = over[rows].sum(axis=0), pool
        if parent != NO_QUOTA:
            taken, bound = taken + use.direct[parent] + lent[parent], tree.guaranteed[parent]
        # What no child is guaranteed is taken first.
        taken = np.maximum(taken - np.maximum(bound - tree.guaranteed[rows].sum(axis=0), 0), 0)
        supply = idle[rows].sum(axis=0)
        lent[rows] = _shared_out(np.minimum(taken, supply), idle[rows], supply)
    return lent


def _shared_out(amount: Ints, idle: Ints, supply: Ints) -> Ints:
    """(n, n_resources) whole units in proportion to `idle`, whose sum is `amount`: shares of running sums."""
    upto = np.cumsum(idle, axis=0)
    share = amount / np.maximum(supply, 1)
    edges = np.minimum(np.round(upto * share).astype(np.int64), amount)
    if len(edges):
        edges[-1] = amount
    return np.diff(edges, axis=0, prepend=0)


def _may_borrow(tree: QuotaTree, use: Use, pool: Ints) -> Ints:
    """By the rule of tenants/quota_admission.py, solved for the amount, from the pool down to the quota."""
    held = committed(tree, use)
    below = use.direct.copy()  # what quotas below a quota and its own pods have
    has_parent = tree.parent != NO_QUOTA
    np.add.at(below, tree.parent[has_parent], held[has_parent])
    room = np.zeros_like(held)  # by how much what is held may grow on its way up from a quota
    found = np.zeros_like(held)
    at_top = pool - held[~has_parent].sum(axis=0)
    for row, up in enumerate(tree.parent.tolist()):
        above = at_top if up == NO_QUOTA else room[up]
        # Growth that a quota takes up itself goes no further.
        room[row] = np.maximum(np.maximum(tree.guaranteed[row], held[row]), held[row] + above) - below[row]
        path = list(tree.path(row))
        most = np.min(tree.most[path] - use.used[path], axis=0)
        own = np.maximum(tree.guaranteed[row] - use.used[row], 0)
        if tree.is_leaf[row]:
            within = tree.guaranteed[row] - use.used[row]
            largest = np.maximum(held[row] - use.used[row] + np.maximum(above, 0), within)
        else:
            largest = room[row]
        found[row] = np.maximum(np.minimum(largest, most) - own, 0)
    return found


def live_report(tables: LiveTables, quotas: Quotas, need: ExpectedNeed | None, *, n_hours: int = 24) -> TenantsReport:
    """Return the report. need: None = what is lent does not depend on a forecast. For any thread."""
    with tables.reading():
        ledger, tree = quotas.ledger, quotas.tree
        forecast = None if need is None else need.forecast
        if forecast is not None and forecast.tree is not tree:
            forecast = None  # quotas have just changed
        use = Use(
            ledger.direct.copy(),
            ledger.used.copy(),
            ledger.waiting.copy(),
            quotas.expected(LOAN_SECONDS),
            quotas.pool(),
        )
        running, waiting, now = ledger.n_used.copy(), ledger.n_waiting.copy(), tables.clock()
    return tenants_report(
        tree,
        use,
        made=now,
        running=running,
        waiting=waiting,
        need=None if forecast is None else forecast.need,
        start=None if forecast is None else forecast.start,
        n_hours=n_hours,
    )
