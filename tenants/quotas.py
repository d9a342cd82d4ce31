"""The quotas of a process: what the watch says of them, what pods use of them, and whether the next pod is admitted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Final

from base.arrays import Ints
from kube.client.kubernetes_contract import Subscription
from kube.objects.objects import PodInfo
from tenants.elastic_quota import WATCHED_QUOTAS, ElasticQuota
from tenants.expected_need import ExpectedNeed
from tenants.ledger import QuotaLedger
from tenants.quota_admission import Bound, Denial, Use, committed, denial, most_admitted
from tenants.quota_amounts import in_words
from tenants.quota_tree import NO_QUOTA, QuotaTree, quota_tree

_MOST_KEPT: Final = 64


def _for_a_day(pod: PodInfo) -> float:
    return 86_400.0


class Quotas:
    """Everything but `use` is called under the lock of the tables.

    ledger : what is used; its tree is that of the watch
    """

    def __init__(
        self,
        ledger: QuotaLedger,
        *,
        need: ExpectedNeed | None = None,
        loan_seconds: Callable[[PodInfo], float] = _for_a_day,
        pool: Callable[[], Ints] | None = None,
    ) -> None:
        """
        need         : what owners will need; None = nothing is expected
        loan_seconds : for how long a pod would keep what it borrows
        pool         : (n_resources,) what may be used in all; None = all guarantees together
        """
        self.ledger, self._need, self.loan_seconds, self._pool = ledger, need, loan_seconds, pool
        self.on_change: list[Callable[[], None]] = []
        if need is not None:
            need.on_change.append(self.changed)
        self._held_back: dict[int, tuple[int, Ints | None, Ints]] = {}

    @property
    def tree(self) -> QuotaTree:
        """Return the quotas as they are now."""
        return self.ledger.tree

    def use(self, tree: QuotaTree, reading: Callable[[], AbstractContextManager[object]]) -> None:
        """Count and admit by these quotas from now on. Not to be called under the lock, which `reading` takes."""
        self.ledger.exchange(tree, reading, self.changed)

    def changed(self) -> None:
        """Notify listeners that other pods may be admitted: quotas, or what owners are expected to need, changed."""
        for listener in self.on_change:
            listener()

    def pool(self) -> Ints | None:
        """(n_resources,) what may be used in all; None = all guarantees together."""
        return None if self._pool is None else self._pool()

    def expected(self, seconds: float) -> Ints | None:
        """(n_quotas, n_resources) units that owners are expected to need at most within so many seconds; None = not
        known."""
        return None if self._need is None else self._need(seconds)

    def use_for(self, pod: PodInfo) -> Use:
        """Return what counts where this pod is to be admitted."""
        ledger = self.ledger
        expected = self.expected(self.loan_seconds(pod))
        return Use(ledger.direct, ledger.used, ledger.waiting, expected, self.pool())

    def denial(self, pod: PodInfo) -> Denial | None:
        """Return why the pod, which has no node, is not admitted; None = it is, or counts already, or in no quota."""
        row = self.tree.row_of(pod)
        charge = self.ledger.charges.get(pod.uid)
        if row == NO_QUOTA or (charge is not None and charge.is_used):
            return None
        use = self.use_for(pod)
        return denial(self.tree, use, row, self.ledger.units_of(pod), held_back=self._committed(use))

    def most_admitted(self, pod: PodInfo, n_pods: int) -> int:
        """Return how many of `n_pods` pods like this one are admitted one after the other."""
        row = self.tree.row_of(pod)
        if row == NO_QUOTA:
            return n_pods
        use = self.use_for(pod)
        units = self.ledger.units_of(pod)
        return most_admitted(self.tree, use, row, units, n_pods, held_back=self._committed(use))

    def sentence(self, pod: PodInfo, found: Denial) -> str:
        """Return in one sentence why the pod waits."""
        return self._why(pod, found) + ("" if self._need is None else self._need.clause(pod))

    def _why(self, pod: PodInfo, found: Denial) -> str:
        tree, row = self.tree, self.tree.row_of(pod)
        resource = tree.resources[found.resource]
        asked, tenant = in_words(resource, found.asked), f"tenant {tree.name(row)}"
        if found.kind is Bound.MAX:
            whose = tenant if found.row == row else f"{tenant} is part of {tree.name(found.row)}, which"
            uses, bound = in_words(resource, found.held), in_words(resource, found.bound)
            return f"{whose} may use {bound} at most and uses {uses}, the pod asks for {asked}"
        left = in_words(resource, max(0, found.bound - found.held))
        least = in_words(resource, int(tree.guaranteed[row, found.resource]))
        uses = in_words(resource, int(self.ledger.used[row, found.resource]))
        return f"{tenant} uses {uses}, its min is {least}, others lend it {left} more, the pod asks for {asked}"

    def _committed(self, use: Use) -> Ints:
        """`committed`, kept while nothing changes: what is expected is one and the same array for a while."""
        known = self._held_back.get(id(use.expected))
        if known is not None and known[0] == self.ledger.version and known[1] is use.expected:
            return known[2]
        if len(self._held_back) > _MOST_KEPT:
            self._held_back.clear()
        found = committed(self.tree, use)
        self._held_back[id(use.expected)] = self.ledger.version, use.expected, found
        return found


class QuotaSink:
    """Implements OptionalSink: the ElasticQuotas of the watch.

    reading        : takes the lock of the tables
    card_resources : extended resources that mean cards
    """

    def __init__(
        self, quotas: Quotas, reading: Callable[[], AbstractContextManager[object]], card_resources: Collection[str]
    ) -> None:
        self._quotas, self._reading, self._cards = quotas, reading, frozenset(card_resources)
        self._objects: dict[str, ElasticQuota] = {}
        self.is_read = False  # whether all quotas were listed once

    def subscription(self) -> Subscription[ElasticQuota]:
        """Return what has to be followed."""
        return Subscription(WATCHED_QUOTAS, self)

    def replace(self, objects: Sequence[ElasticQuota]) -> None:
        """These are all the quotas that there are."""
        listed = {one.key: one for one in objects}
        if self.is_read and listed == self._objects:
            return  # where the definition is not installed this comes again and again; a swap looks at all pods
        self._objects = listed
        self._swap()
        self.is_read = True

    def absent(self) -> None:
        """The definition is not installed: there are no quotas."""
        self.replace(())

    def put(self, obj: ElasticQuota) -> None:
        """One is new or has changed; its status, which others write, does not matter."""
        if self._objects.get(obj.key) != obj:
            self._objects[obj.key] = obj
            self._swap()

    def delete(self, obj: ElasticQuota) -> None:
        """One of the quotas is gone."""
        if self._objects.pop(obj.key, None) is not None:
            self._swap()

    def _swap(self) -> None:
        self._quotas.use(quota_tree(self._objects.values(), card_resources=self._cards), self._reading)
