"""Which pods only the leader may decide about: those whose rules count over the nodes of all. Plugin DecidedAlone does
not bind what a replica decided as the leader once another one may lead.

What counts on one node only is safe, as each node has one owner. What counts over several nodes is not: two replicas
that decide in the same moment do not see each other's last pods.

The next leader counts quotas, zones and loans over what it has read: what is bound after that would not be in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, PodsSeated
from kube.objects.constraints import PodAffinityTerm
from kube.objects.objects import PodInfo
from placement.index.affinity_terms import means
from placement.index.namespaces import Namespaces
from placement.machine_groups.membership import asks_to_borrow
from placement.status import SUCCESS, Code, Status

_HOSTNAME: Final = "kubernetes.io/hostname"


class WideTerms(NodesAndPodsOnly):
    """Required anti-affinity terms over more than one node, of all pods: a pod that one of them means is decided where
    the pod with the term is. Implements Follower."""

    def __init__(self, cluster: AssumingCluster, namespaces: Namespaces, changed: Callable[[], None]) -> None:
        """changed: called under the lock when there is a term more, or one less"""
        self._cluster, self._namespaces, self._changed = cluster, namespaces, changed
        self._of_pod: dict[str, tuple[PodAffinityTerm, ...]] = {}
        self._terms: Counter[PodAffinityTerm] = Counter()

    def __bool__(self) -> bool:
        """Return whether there is a term. For any thread."""
        return bool(self._terms)

    def mean(self, pod: PodInfo) -> bool:
        """Return whether a term of another pod means this one."""
        return any(means(term, pod, self._namespaces) for term in self._terms)

    def may_be_first(self, pod: PodInfo) -> bool:
        """Return whether the pod needs others by affinity that it is one of: where there is none, it goes anywhere."""
        terms = pod.constraints.affinity
        return bool(terms) and all(means(term, pod, self._namespaces) for term in terms)

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, PodChange):
                self._look(change.pod)
            elif isinstance(change, PodsSeated) and any(_wide(change.pods[0])):
                for pod in change.pods:
                    self._look(pod)

    def rebuild(self) -> None:
        self._of_pod.clear()
        self._terms.clear()
        for pod in self._cluster.state.pods.values():
            self._look(pod)

    def _look(self, pod: PodInfo) -> None:
        known = self._cluster.state.pods.get(pod.uid)
        now = () if known is None else tuple(_wide(known))
        before = self._of_pod.get(pod.uid, ())
        if now == before:
            return
        is_new = any(term not in self._terms for term in now)
        self._terms.update(now)
        self._terms.subtract(before)
        gone = {term for term in before if not self._terms[term]}
        for term in gone:
            del self._terms[term]
        if now:
            self._of_pod[pod.uid] = now
        else:
            self._of_pod.pop(pod.uid, None)
        if is_new or gone:
            self._changed()


class OneDecider:
    """Says of a pod why one replica has to decide about it."""

    def __init__(
        self,
        terms: WideTerms,
        *,
        class_resources: Container[str] = (),
        has_quota: Callable[[str], bool] = lambda namespace: False,
        by_profile: Callable[[PodInfo], str] = lambda pod: "",
    ) -> None:
        """
        class_resources : extended resources that a DeviceClass offers
        has_quota       : whether a quota holds in a namespace
        by_profile      : what the rules of the pod's profile say, '' = nothing
        """
        self._terms, self._classes = terms, class_resources
        self._has_quota, self._by_profile = has_quota, by_profile

    def reason(self, pod: PodInfo) -> str:
        """Return the reason in a few words; '' = any replica may decide. Quick, under the lock of the tables."""
        rules = pod.constraints
        if any(term.topology_key != _HOSTNAME for term in (*rules.affinity, *rules.anti_affinity)):
            return "its affinity to pods counts over several nodes"
        if any(one.hard and one.topology_key != _HOSTNAME for one in rules.spread):
            return "its topology spread counts over several nodes"
        if self._terms.may_be_first(pod):
            return "the first pod of its affinity may go to any node"
        if self._terms.mean(pod):
            return "the anti-affinity of another pod counts over several nodes"
        if pod.stands_in:
            return "it is a Reservation"
        if pod.resource_claims or any(ask.resource in self._classes for ask in pod.device_asks):
            return "its devices may be reached from several nodes"
        if asks_to_borrow(pod):
            return "it borrows from a machine group"
        if self._has_quota(pod.namespace):
            return "a quota counts over all nodes"
        return self._by_profile(pod)


def _wide(pod: PodInfo) -> Iterator[PodAffinityTerm]:
    return (term for term in pod.constraints.anti_affinity if term.topology_key != _HOSTNAME)


class DecidedAlone:
    """Implements Reserve and Bind; the latter is to be asked before the plugin that binds. leads: the Lease says so."""

    name: Final = "DecidedAlone"

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._pods: set[str] = set()

    def add(self, uids: Iterable[str]) -> None:
        """These were placed by rules that count over the nodes of all."""
        self._pods.update(uids)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """Keep it: whether it is the leader's is known once its whole unit was looked at."""
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """It is not bound after all."""
        self._pods.discard(pod.uid)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = it may be bound."""
        if pod.uid not in self._pods:
            return Status(Code.SKIP, self.name)
        self._pods.discard(pod.uid)
        if self._leads():
            return Status(Code.SKIP, self.name)
        return Status(Code.UNSCHEDULABLE, self.name, "it was placed as the leader, which this replica is no more")
