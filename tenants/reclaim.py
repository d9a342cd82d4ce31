"""Which pods may be evicted for a pod of a tenant, and which of them only because they borrow.

    by priority  pods of less importance of the same tenant, and of no tenant; for a pod of no tenant that is critical
                 to the system any pod of less importance. Any client may use such a priority, so it counts for no
                 tenant
    lent         the pod's tenant, or one above it, is within its min with the pod: pods of tenants that are beyond
                 theirs, in a resource that both pods request. On each node the newest of the lowest priority first,
                 and no more of a tenant than brings it back to its min

SelectVictimsOnNode of pkg/capacityscheduling/capacity_scheduling.go in scheduler-plugins, which knows no tree and takes
any pod of a tenant that is beyond its min.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.predicted.array_rows import grown
from kube.objects.objects import PodInfo
from placement.pod_importance import SYSTEM_CRITICAL
from tenants.ledger import QuotaLedger
from tenants.need import with_parents
from tenants.quota_tree import EMPTY, NO_QUOTA, QuotaTree
from tenants.tenant_settings import TenantOptions

NO_SLOTS: Final[Ints] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Evictions that have begun: what they take and bring counts already, or it would be taken twice.

    gone   : slots of pods that are out of the tables for the moment, as if they had been evicted already
    going  : slots of pods that are being evicted; those that terminate are known from the pods themselves
    coming : pods that have no node yet and for which room is made, but for the one that asks and its gang
    """

    gone: Ints = field(default_factory=lambda: NO_SLOTS)
    going: Ints = field(default_factory=lambda: NO_SLOTS)
    coming: Sequence[PodInfo] = ()


_NOTHING: Final = UnderWay()


class Seated(Protocol):
    """Pods that sit, by slot, as far as they matter here: scheduler.preemption.sitting_pods.SittingPods."""

    pods: list[PodInfo | None]
    row: Ints
    priority: Ints
    standing: Ints
    started: Floats
    created: Floats
    tie: Ints


@dataclass(frozen=True, slots=True)
class MayGo:
    """(n_slots,) each.

    by_priority  : pods that go as they always do
    lent         : pods that borrow, which go whatever their priority
    with_gang    : pods of tenants that borrow, which go if their gang does
    wait_seconds : until pods that borrow may go; 0 = they may now, or none would
    """

    by_priority: Bools
    lent: Bools
    with_gang: Bools
    wait_seconds: float = 0.0


class Reclaim:
    """Called under the lock of the tables.

    clock : unix seconds
    """

    def __init__(self, ledger: QuotaLedger, options: TenantOptions, *, clock: Callable[[], float]) -> None:
        self._ledger, self._options, self._clock = ledger, options, clock
        self._slots = _Slots()

    def may_go(self, pod: PodInfo, seated: Seated, under_way: UnderWay = _NOTHING) -> MayGo:
        """Return who may be evicted for a pod that has no node."""
        tree = self._ledger.tree
        n = len(seated.pods)
        lower = (seated.row[:n] >= 0) & (seated.priority[:n] < pod.priority)
        nothing = np.zeros(n, dtype=bool)
        own = tree.row_of(pod)
        if not tree.quotas or (own == NO_QUOTA and pod.priority >= SYSTEM_CRITICAL):
            return MayGo(lower, nothing, nothing)
        self._slots.follow(self._ledger, seated.pods)
        quota = self._slots.quota[:n]
        by_priority = lower & ((quota == own) | (quota == NO_QUOTA))
        if own == NO_QUOTA or not self._options.reclaim:
            return MayGo(by_priority, nothing, nothing)
        lent, with_gang = self._lent(pod, own, seated, quota, under_way)
        wait = pod.created + self._options.grace - self._clock()
        if wait > 0 and lent.any():
            return MayGo(by_priority, nothing, nothing, wait)
        return MayGo(by_priority, lent, with_gang)

    def is_lent(self, victim: PodInfo, pod: PodInfo) -> bool:
        """Return whether the victim is of another tenant than the pod, so that it goes only for what it borrows."""
        tree = self._ledger.tree
        own, of_victim = tree.row_of(pod), tree.row_of(victim)
        if own == NO_QUOTA and pod.priority >= SYSTEM_CRITICAL:
            return False
        return of_victim not in (NO_QUOTA, own)

    # Inside

    def _lent(self, pod: PodInfo, own: int, seated: Seated, quota: Ints, under_way: UnderWay) -> tuple[Bools, Bools]:
        tree, used = self._ledger.tree, self._with_coming(under_way.coming)
        asked = np.array(self._ledger.units_of(pod), dtype=np.int64)
        columns = np.flatnonzero(asked)
        units = self._slots.units[: len(quota)]
        lent, with_gang = np.zeros(len(quota), dtype=bool), np.zeros(len(quota), dtype=bool)
        leaves = self._slots.terminates[: len(quota)].copy()
        leaves[under_way.going] = True
        leaves[under_way.gone] = False
        leaves &= (quota != NO_QUOTA) & (seated.row[: len(quota)] >= 0)
        over = self._ledger.used - self._of(np.flatnonzero(leaves)) - tree.guaranteed  # (n_quotas, n_resources)
        for level in tree.path(own):
            if (used[level, columns] + asked[columns] > tree.guaranteed[level, columns]).any():
                continue
            beyond = _beyond(tree, over > 0, level)
            slots = np.flatnonzero(quota >= 0)
            slots = slots[(beyond[quota[slots]][:, columns] & (units[slots][:, columns] > 0)).any(axis=1)]
            with_gang[slots] = True
            slots = slots[~np.isin(slots, under_way.gone) & ~leaves[slots]]
            lent[self._not_too_many(slots, quota, units, over, columns, int(tree.depth[level]), seated)] = True
            # Those that leave anyway cost nothing, and are not evicted again.
            lent |= leaves
            with_gang |= leaves
        return lent, with_gang

    def _with_coming(self, pods: Sequence[PodInfo]) -> Ints:
        """(n_quotas, n_resources) units that are used, those of these pods included."""
        ledger = self._ledger
        used = ledger.used
        for pod in pods:
            charge = ledger.charges.get(pod.uid)
            row = ledger.tree.row_of(pod)
            if row == NO_QUOTA or (charge is not None and charge.is_used):
                continue
            used = used.copy() if used is ledger.used else used
            used[list(ledger.tree.path(row))] += np.array(ledger.units_of(pod), dtype=np.int64)
        return used

    def _of(self, slots: Ints) -> Ints:
        """(n_quotas, n_resources) units that the pods of these slots use, with those of all quotas above."""
        tree = self._ledger.tree
        own = np.zeros_like(tree.guaranteed)
        np.add.at(own, self._slots.quota[slots], self._slots.units[slots])
        return with_parents(tree, own) if len(slots) else own

    def _not_too_many(
        self, slots: Ints, quota: Ints, units: Ints, over: Ints, columns: Ints, depth: int, seated: Seated
    ) -> Ints:
        """Of these slots those that may go on their node before their tenant, or one above it, is within its min."""
        tree = self._ledger.tree
        for above in range(int(tree.depth.max(initial=0)), depth - 1, -1):
            if not len(slots):
                break
            at = _at_depth(tree, quota[slots], above)
            order = np.lexsort(
                (
                    -seated.tie[slots],
                    -seated.created[slots],
                    -seated.started[slots],
                    seated.standing[slots],
                    at,
                    seated.row[slots],
                )
            )
            slots, at = slots[order], at[order]
            starts = np.r_[True, (np.diff(at) != 0) | (np.diff(seated.row[slots]) != 0)]
            group = np.cumsum(starts) - 1
            wanted = units[slots][:, columns]
            before = np.cumsum(wanted, axis=0) - wanted
            before = before - before[starts][group]
            still_over = (before < over[at][:, columns]) & (wanted > 0)
            slots = slots[still_over.any(axis=1)]
        return slots


def _beyond(tree: QuotaTree, over: Bools, level: int) -> Bools:
    """(n_quotas, n_resources) quotas beyond their min, as are all above them up to a sibling of `level`."""
    beyond = np.zeros_like(over)
    for depth in range(int(tree.depth[level]), int(tree.depth.max()) + 1):
        rows = np.flatnonzero(tree.depth == depth)
        if depth == tree.depth[level]:
            rows = rows[(tree.parent[rows] == tree.parent[level]) & (rows != level)]
            beyond[rows] = over[rows]
        else:
            beyond[rows] = over[rows] & beyond[tree.parent[rows]]
    return beyond


def _at_depth(tree: QuotaTree, rows: Ints, depth: int) -> Ints:
    """(n,) for each quota the one above it at this depth, itself where it is not deeper."""
    rows = rows.copy()
    for _ in range(int(tree.depth.max(initial=0))):
        deeper = tree.depth[rows] > depth
        rows[deeper] = tree.parent[rows[deeper]]
    return rows


class _Slots:
    """Quota and amounts by slot of the pods that sit, brought up to date at each question.

    quota : (n_slots,) or more, NO_QUOTA = of none
    units : (n_slots, n_resources) or more
    terminates : (n_slots,) or more, the pod is on its way out
    """

    def __init__(self) -> None:
        self._tree = EMPTY
        self._seen: list[PodInfo | None] = []
        self.quota: Ints = np.zeros(0, dtype=np.int64)
        self.units: Ints = np.zeros((0, 0), dtype=np.int64)
        self.terminates: Bools = np.zeros(0, dtype=bool)

    def follow(self, ledger: QuotaLedger, pods: Sequence[PodInfo | None]) -> None:
        if ledger.tree is not self._tree:
            self._tree, self._seen = ledger.tree, []
            self.quota = np.full(len(pods), NO_QUOTA, dtype=np.int64)
            self.units = np.zeros((len(pods), len(ledger.tree.resources)), dtype=np.int64)
            self.terminates = np.zeros(len(pods), dtype=bool)
        seen = self._seen
        seen += [None] * (len(pods) - len(seen))
        if len(pods) > len(self.quota):
            self.quota, self.units = grown(self.quota, len(pods), NO_QUOTA), grown(self.units, len(pods))
            self.terminates = grown(self.terminates, len(pods))
        for slot in _changed(seen, pods):
            pod = seen[slot] = pods[slot]
            self.quota[slot] = NO_QUOTA if pod is None else ledger.tree.row_of(pod)
            self.units[slot] = 0
            self.terminates[slot] = pod is not None and pod.terminating
            if pod is not None and self.quota[slot] != NO_QUOTA:
                # What is tried out may have taken it from the ledger for a moment.
                charge = ledger.charges.get(pod.uid)
                self.units[slot] = ledger.units_of(pod) if charge is None else charge.units


def _changed(seen: Sequence[PodInfo | None], pods: Sequence[PodInfo | None]) -> Iterable[int]:
    return [slot for slot, (one, other) in enumerate(zip(seen, pods, strict=False)) if one is not other]
