"""How far tenants are served: dominant shares of what quotas guarantee them, then weighted shares of what is lent.

    level(quota) = max_r used_r / min_r                            while that is 1 or less
                   1 + (max_r used_r / min_r - 1) / weight         beyond: the quota borrows
                   1 or more, if the next pod asks for something of which the quota has no min
                   what is used without a min counts as borrowed, by its share of the whole pool

DRF (Ghodsi et al., NSDI 2011) over quotas in place of the cluster, from the top of the tree down (hierarchical DRF,
Bhattacharya et al., SoCC 2013): a tenant below its min goes before all that borrow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from kube.objects.objects import PodInfo
from scheduler.quota_queues.owner_levels import KnownFlow, Level
from scheduler.quota_queues.owner_shares import dominant, pods_to_level
from tenants.ledger import QuotaLedger
from tenants.quota_amounts import Units
from tenants.quota_tree import EMPTY, NO_QUOTA

_NOT_KNOWN: Final[Level] = (0.0,)
_MOST_SHAPES: Final = 4096


class TenantLevels:
    """Implements Levels. What it reads changes under the lock of the tables, which is not taken: a level that is a
    moment old does no harm. While quotas are exchanged, those before them count."""

    def __init__(self, ledger: QuotaLedger) -> None:
        self._ledger = ledger
        self._tree, self._used = EMPTY, ledger.used
        self._now, self._version = 0, -1  # of the ledger: as it is, and when the levels were worked out
        self._rows: dict[str, int] = {}
        self._pool: Floats = np.zeros(0)
        self._levels: list[Level] = []
        self._lacking: dict[Units, Bools] = {}

    def level(self, flow: KnownFlow, pod: PodInfo) -> Level:
        """Return the levels of the quotas from the top to that of the tenant."""
        row = self._row(flow)
        if row is None:
            return _NOT_KNOWN
        if self._version != self._now:
            self._levels, self._version = self._all_levels(), self._now
        level = self._levels[row]
        if min(level) >= 1.0:
            return level
        lacks = self._lacks_min(pod)
        path = self._tree.path(row)[::-1]
        return tuple(max(one, 1.0) if lacks[above] else one for one, above in zip(level, path, strict=True))

    def to_level(self, flow: KnownFlow, pod: PodInfo, level: Level) -> tuple[float, float]:
        """See Levels. A tenant gets up to its min at once, and beyond it a pod and what the order adds to that."""
        row = self._row(flow)
        if row is None:
            return 0.0, 0.0
        tree = self._tree
        demand = self._ledger.amounts.of(pod, tree.resources)
        one, _ = dominant(demand, self._pool.tolist())
        least = min(level[-1], 1.0)
        n_pods = pods_to_level(self._used[row].tolist(), demand, tree.guaranteed[row].tolist(), least)
        return one, 0.0 if n_pods == float("inf") else n_pods

    def _row(self, flow: KnownFlow) -> int | None:
        ledger = self._ledger
        version, tree, used = ledger.version, ledger.tree, ledger.used
        if used.shape == tree.guaranteed.shape:  # else quotas are being exchanged
            if tree is not self._tree:
                self._tree, self._version = tree, -1
                self._lacking.clear()
                self._rows = {tree.name(row): row for row in range(len(tree.quotas))}
                self._pool = tree.guaranteed[tree.parent == NO_QUOTA].sum(axis=0).astype(np.float64)
            self._used, self._now = used, version
        return self._rows.get(flow.member.owner)

    def _lacks_min(self, pod: PodInfo) -> Bools:
        """(n_quotas,) whether a quota has no min at all of something that the pod asks for."""
        asked = self._ledger.amounts.of(pod, self._tree.resources)
        lacks = self._lacking.get(asked)
        if lacks is None:
            if len(self._lacking) > _MOST_SHAPES:
                self._lacking.clear()
            wanted = np.array(asked, dtype=np.int64) > 0
            lacks = self._lacking[asked] = (self._tree.guaranteed[:, wanted] == 0).any(axis=1)
        return lacks

    def _all_levels(self) -> list[Level]:
        tree, used = self._tree, self._used
        with np.errstate(divide="ignore", invalid="ignore"):
            of_min = np.where(tree.guaranteed > 0, used / tree.guaranteed, 0.0)
            unguaranteed = np.where((tree.guaranteed == 0) & (used > 0), 1.0 + used / np.maximum(self._pool, 1.0), 0.0)
        share = np.maximum(of_min, unguaranteed).max(axis=1, initial=0.0)
        own = np.where(share <= 1.0, share, 1.0 + (share - 1.0) / tree.weight).tolist()
        levels: list[Level] = []
        for row, parent in enumerate(tree.parent.tolist()):
            levels.append((own[row],) if parent == NO_QUOTA else (*levels[parent], own[row]))
        return levels
