"""What each quota's pods use and wait for, and what all quotas together may use where they share the nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, PodsSeated
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import waits
from kube.objects.objects import NodeInfo, PodInfo
from tenants.quota_amounts import PodAmounts, Units
from tenants.quota_tree import BOUNDLESS, CARD_UNITS, CARDS, EMPTY, NO_QUOTA, QuotaTree

_NODES: Final = (NodeAdded, NodeChanged, NodeRemoved)

_UNITS_AT_ONCE: Final = 6000
"""Amounts of pods that are counted anew in one go, one for each resource and some for the pod itself: some milliseconds
under the lock."""

_UNITS_OF_A_POD: Final = 10

_PAUSE_SECONDS: Final = 0.001
"""Between two of these. A thread that takes a lock again at once leaves it to no other."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What a pod counts for. row: of its quota; is_used: it holds the amounts, else it waits for them; sits: it has a
    node, or is assumed to."""

    row: int
    units: Units
    is_used: bool
    sits: bool


def _counts_for_nothing(pod: PodInfo) -> bool:
    return False


class QuotaLedger(NodesAndPodsOnly):
    """Implements Follower; everything is called under the lock of the tables.

    tree    : of quotas; `use` sets it
    direct  : (n_quotas, n_resources) units that pods of the quota itself use
    used    : the same with the pods of all quotas below it
    waiting : the same of pods of the quota itself that wait for a node
    on_no_node : (n_resources,) units of `used` that pods without a node were promised
    n_used, n_waiting : (n_quotas,) pods of the quota itself
    version : another number whenever any of these has changed; nodes_version: whenever a node has
    """

    def __init__(self, state: ClusterState, amounts: PodAmounts, *, open_gate: str = "") -> None:
        """open_gate: scheduling gate that keeps no pod from counting as one that waits"""
        self._state, self.amounts = state, amounts
        self._open_gate = open_gate
        self._is_released: Callable[[PodInfo], bool] = _counts_for_nothing
        self.on_less_waiting: list[Callable[[], None]] = []
        self.version = self.nodes_version = 0
        self.tree = EMPTY
        self.charges: dict[str, Charge] = {}
        self._promised: set[str] = set()
        self._next: QuotaLedger | None = None
        """Counts by the quotas that come; see `exchange`."""
        self._clear()

    def exchange(
        self, tree: QuotaTree, reading: Callable[[], AbstractContextManager[object]], then: Callable[[], None]
    ) -> None:
        """Count by these quotas from now on. Not to be called under the lock of the tables, by one thread at a time.

        Pods are counted anew only if some pod may count otherwise than before, some at a time. Meanwhile the quotas
        before hold, and what happens to pods counts in both.

        reading : takes the lock
        then    : called under it once these quotas hold
        """
        if tree.counts_like(self.tree):
            with reading():
                self.tree = tree
                self.version += 1
                then()
            return
        new = QuotaLedger(self._state, self.amounts, open_gate=self._open_gate)
        new.tree, new._promised = tree, self._promised
        new._clear()
        with reading():
            new._is_released = self._is_released
            uids = list(self._state.pods) if tree.quotas else []
            self._next = new
        at_once = _UNITS_AT_ONCE // (_UNITS_OF_A_POD + len(tree.resources))
        try:
            for first in range(0, len(uids), at_once):
                with reading():
                    for uid in uids[first : first + at_once]:
                        new._look(uid)
                time.sleep(_PAUSE_SECONDS)
        except BaseException:
            self._next = None
            raise
        with reading():
            self._next, before = None, self.charges
            self._take_over(new)
            then()
        del before  # a hundred thousand objects, freed outside the lock

    def count_released(self, is_released: Callable[[PodInfo], bool]) -> None:
        """Count pods without a node that another component may bind at any moment as ones that use their quota.

        Only for a process that gives no node to such pods itself: what counts as used is admitted already.
        """
        self._is_released = is_released
        if self._next is not None:
            self._next._is_released = is_released
        self.rebuild()

    def units_of(self, pod: PodInfo) -> Units:
        """Return what a pod takes that has no node."""
        return self.amounts.of(pod, self.tree.resources)

    def promise(self, uid: str) -> None:
        """Count a pod that waits as one that uses its quota: somebody else is about to be free to bind it."""
        self._promised.add(uid)
        self._look_in_both(uid)

    def withdraw(self, uid: str) -> None:
        """What was promised to a pod did not happen."""
        self._promised.discard(uid)
        self._look_in_both(uid)

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        if self._next is not None:
            self._next.apply(changes)
        self.nodes_version += any(isinstance(change, _NODES) for change in changes)
        if not self.tree.quotas:
            return
        for change in changes:
            if isinstance(change, PodsSeated):
                self._seat_all(change.pods)
            elif isinstance(change, PodChange):
                self._look(change.pod.uid)

    def rebuild(self) -> None:
        """From the tables as they are."""
        if self._next is not None:
            self._next.rebuild()
        self.nodes_version += 1
        self._clear()
        self._promised.intersection_update(self._state.pods)
        if self.tree.quotas:
            for uid in self._state.pods:
                self._look(uid)

    # Inside

    def _clear(self) -> None:
        tree = self.tree
        self.charges.clear()
        self.direct: Ints = np.zeros_like(tree.guaranteed)
        self.used: Ints = np.zeros_like(tree.guaranteed)
        self.waiting: Ints = np.zeros_like(tree.guaranteed)
        self.on_no_node: Ints = np.zeros(len(tree.resources), dtype=np.int64)
        self.n_used: Ints = np.zeros(len(tree.quotas), dtype=np.int64)
        self.n_waiting: Ints = np.zeros(len(tree.quotas), dtype=np.int64)
        self.version += 1

    def _take_over(self, new: QuotaLedger) -> None:
        self.tree, self.charges = new.tree, new.charges
        self.direct, self.used, self.waiting = new.direct, new.used, new.waiting
        self.on_no_node, self.n_used, self.n_waiting = new.on_no_node, new.n_used, new.n_waiting
        self.version += 1

    def _look_in_both(self, uid: str) -> None:
        if self._next is not None:
            self._next._look(uid)
        self._look(uid)

    def _look(self, uid: str) -> None:
        before, now = self.charges.get(uid), self._charge_of(uid)
        if before == now:
            return
        if before is not None:
            self._add(before, -1)
            del self.charges[uid]
        if now is not None:
            self._add(now, 1)
            self.charges[uid] = now
        if before is not None and not before.is_used and now is None:
            for listener in self.on_less_waiting:
                listener()

    def _charge_of(self, uid: str) -> Charge | None:
        pod = self._state.pods.get(uid)
        if pod is None:
            self._promised.discard(uid)
            return None
        row = self.tree.row_of(pod)
        if row == NO_QUOTA:
            return None
        seat = self._state.seat_of.get(uid)
        if seat is not None:
            node = self._state.nodes[seat.node]
            return Charge(row, self.amounts.of(pod, self.tree.resources, node), True, True)
        if not waits(pod) or pod.terminating or any(gate != self._open_gate for gate in pod.gates):
            return None
        return Charge(row, self.units_of(pod), uid in self._promised or self._is_released(pod), False)

    def _seat_all(self, pods: Sequence[PodInfo]) -> None:
        """Pods that are alike and have waited: most of them change from waiting to used by the same amounts."""
        first = self.charges.get(pods[0].uid)
        if first is None or self.amounts.depends_on_node(pods[0]):
            for pod in pods:
                self._look(pod.uid)
            return
        held = Charge(first.row, first.units, True, True)
        n = 0
        for pod in pods:
            if self.charges.get(pod.uid) == first and not first.is_used:
                self.charges[pod.uid] = held
                n += 1
            else:
                self._look(pod.uid)
        if n:
            self._add(first, -n)
            self._add(held, n)

    def _add(self, charge: Charge, n: int) -> None:
        units = n * np.array(charge.units, dtype=np.int64)
        self.version += 1
        if not charge.is_used:
            self.waiting[charge.row] += units
            self.n_waiting[charge.row] += n
            return
        if not charge.sits:
            self.on_no_node += units
        self.direct[charge.row] += units
        self.n_used[charge.row] += n
        for row in self.tree.path(charge.row):
            self.used[row] += units


class PoolOfNodes:
    """Asked under the lock of the tables.

    Shares of cards of pods without a quota do not count: they are no request that nodes know of.
    """

    def __init__(
        self,
        ledger: QuotaLedger,
        state: ClusterState,
        *,
        counts: Callable[[NodeInfo], bool],
        cards_of: Callable[[NodeInfo], float],
        card_resources: Collection[str],
    ) -> None:
        """
        counts   : whether quotas share what a node can allocate
        cards_of : cards that a node has
        """
        self._ledger, self._state = ledger, state
        self._counts, self._cards_of, self._card_resources = counts, cards_of, tuple(card_resources)
        self._known = EMPTY, -1
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._offered: list[int] = []
        self._columns: list[list[int]] = []

    def __call__(self) -> Ints:
        """(n_resources,) units, as the ledger's tree names the resources. What nodes do not offer has no bound."""
        ledger, tree = self._ledger, self._ledger.tree
        if self._known != (tree, ledger.nodes_version):
            self._known = tree, ledger.nodes_version
            self._look()
        of_tenants = ledger.used[tree.parent == NO_QUOTA].sum(axis=0) - ledger.on_no_node
        pool = np.full(len(tree.resources), BOUNDLESS, dtype=np.int64)
        for at, (name, offered, columns) in enumerate(zip(tree.resources, self._offered, self._columns, strict=True)):
            if offered >= 0:
                units = CARD_UNITS if name == CARDS else 1
                requested = units * int(self._state.requested_units[self._rows][:, columns].sum())
                pool[at] = offered - max(0, requested - int(of_tenants[at]))
        return pool

    def _look(self) -> None:
        """At the nodes: which count, and what they offer of each resource together, -1 = they do not name it."""
        state, tree = self._state, self._ledger.tree
        nodes = {row: node for row, node in enumerate(state.nodes) if node is not None and self._counts(node)}
        self._rows = np.fromiter(nodes, dtype=np.int64, count=len(nodes))
        self._offered, self._columns = [], []
        for name in tree.resources:
            kinds = self._card_resources if name == CARDS else (name,)
            columns = [state.kinds[kind] for kind in kinds if kind in state.kinds]
            self._columns.append(columns)
            if name == CARDS:
                self._offered.append(round(CARD_UNITS * sum(map(self._cards_of, nodes.values()))))
            elif columns:
                self._offered.append(int(state.allocatable_units[self._rows][:, columns].sum()))
            else:
                self._offered.append(-1)
