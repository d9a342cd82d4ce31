"""What each owner's pods hold of the cluster: requests of pods that sit or are assumed to, by queue and owner; the
dominant share of several resources; and metrics.

GPUs are one resource, "cards": whole ones, shares by annotation in thousandths, and shares by memory, by the rules that
place them (docs/use/gpu.md). A share by memory counts as a whole card while its pod waits.

Followed pod by pod, in constant time. Records are replaced and never changed, so that who reads them needs no lock.

    dominant share(owner) = max_r used_r / total_r          level(owner) = dominant share / weight

The owner of the lowest level goes next. Amounts are tuples, (n_resources,), in cores, bytes and counts; what is missing
at the end of a shorter one is 0. Resources that no node offers do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, PodsSeated
from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo
from scheduler.quota_queues.queue_of import QueueOf, QueueOwner

# Dominant resource fairness (Ghodsi et al., NSDI 2011): shares of several resources in one number, and how many pods
# bring an owner level with another one.
#
#     dominant share(owner) = max_r used_r / total_r          level(owner) = dominant share / weight
#
# The owner of the lowest level goes next. Amounts are tuples, (n_resources,), in cores, bytes and counts; what is
# missing at the end of a shorter one is 0. Resources that no node offers do not count.

Amounts = tuple[float, ...]

_A_BIT: Final = 1e-9
"""Of a share: sums of floats that should be equal differ by less."""

CARDS: Final = "cards"

_MOST_RESOURCES: Final = 16
"""In addition to cpu and memory: those that nodes offer under a vendor's name, such as nvidia.com/gpu."""

_LABELS = ["queue", "owner"]


def dominant(used: Sequence[float], total: Sequence[float]) -> tuple[float, int]:
    """The largest share, and of which resource; (0, 0) of nothing."""
    share, resource = 0.0, 0
    for at, (one, of_all) in enumerate(zip(used, total, strict=False)):
        if of_all > 0 and one > share * of_all:
            share, resource = one / of_all, at
    return share, resource


def pods_to_level(used: Sequence[float], demand: Sequence[float], total: Sequence[float], share: float) -> float:
    """Fewest further pods of this demand with which the dominant share is `share` or more; inf = none suffice.

    used may be shorter than demand.
    """
    fewest = math.inf
    for at, (one, of_all) in enumerate(zip(demand, total, strict=False)):
        if one > 0 and of_all > 0:
            lacking = (share - _A_BIT) * of_all - (used[at] if at < len(used) else 0.0)
            fewest = min(fewest, max(0.0, math.ceil(lacking / one)))
    return fewest


@dataclass(frozen=True, slots=True)
class CardAmounts:
    """How GPUs are counted.

    resources : extended resources that mean cards, which are not counted a second time under their names
    of_pod    : cards that a pod takes on a node; None = it waits
    of_node   : cards that a node has
    """

    resources: frozenset[str]
    of_pod: Callable[[PodInfo, NodeInfo | None], float]
    of_node: Callable[[NodeInfo], float]


NO_CARDS: Final = CardAmounts(frozenset(), lambda pod, node: 0.0, lambda node: 0.0)


@dataclass(frozen=True, slots=True)
class OwnerUse:
    """n_pods: that sit; amounts: what they request together, as `Shares.resources` names it."""

    n_pods: int
    amounts: Amounts


_NOTHING: Final = OwnerUse(0, ())


@dataclass(frozen=True, slots=True)
class OwnerShare:
    """share: of `resource`, of which the owner holds most, 0..1."""

    queue: str
    owner: str
    n_pods: int
    share: float
    resource: str


class Shares(NodesAndPodsOnly):
    """Implements cluster.follower.Follower. Written under the lock of the tables, read without it.

    resources    : names: cpu, memory, cards, then what nodes offer under a vendor's name
    total        : what all counted nodes can allocate, as `resources` names it
    room_changes : another number whenever a pod of any owner has left its node, or counted nodes offer something else
    """

    def __init__(
        self,
        state: ClusterState,
        *,
        queue_of: QueueOf,
        counts: Callable[[NodeInfo], bool] = lambda node: True,
        otherwise: Callable[[NodeInfo], bool] = lambda node: False,
        cards: CardAmounts = NO_CARDS,
    ) -> None:
        """
        counts    : whether what a node can allocate is shared out. Virtual nodes, which have no end, should not be:
                    what sits there is charged all the same, so that no owner takes them all
        otherwise : which nodes count while there is none of these: virtual ones, where there are no others
        """
        self._state, self._queue_of, self._cards = state, queue_of, cards
        self._counts, self._otherwise = counts, otherwise
        self.room_changes = 0
        self.rebuild()

    # Read from any thread

    def held(self, member: QueueOwner) -> OwnerUse:
        """By the pods of an owner in a queue."""
        return self._held.get(member, _NOTHING)

    def demand(self, pod: PodInfo, node: NodeInfo | None = None) -> Amounts:
        """What one pod takes on a node; None = it waits. Of cpu and memory at least as much as kube-scheduler assumes
        where nothing is requested."""
        requests, (cpu, memory) = pod.requests, pod.nonzero_requests
        first = max(requests.get("cpu", 0.0), cpu), max(requests.get("memory", 0.0), memory)
        further = self.resources[2:]
        if not further:
            return first
        amounts = [self._cards.of_pod(pod, node) if name == CARDS else requests.get(name, 0.0) for name in further]
        return (*first, *amounts)

    def report(self) -> tuple[OwnerShare, ...]:
        """Of all owners that hold something, by queue and owner."""
        resources, total = self.resources, self.total
        answer = []
        for member, held in sorted(self._held.copy().items()):
            share, resource = dominant(held.amounts, total[: len(resources)])
            answer.append(OwnerShare(member.queue, member.owner, held.n_pods, share, resources[resource]))
        return tuple(answer)

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """What happened to nodes and pods."""
        for change in changes:
            match change:
                case PodChange(pod, before, None):
                    self.room_changes += before is not None
                    self._release(pod.uid)
                case PodChange(pod, _, _):
                    self._charge(pod)
                case PodsSeated(pods):
                    self._charge_alike(pods)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._follow_node(row)
                case _:
                    pass

    def rebuild(self) -> None:
        """Anew from all nodes and pods."""
        state = self._state
        self.room_changes += 1
        # Rows of nodes that count; while there are none, others take their place.
        self._own = {row for row, node in enumerate(state.nodes) if node is not None and self._counts(node)}
        self._is_counted = self._counts if self._own else self._otherwise
        offered = {
            name for node in state.nodes if node is not None and self._is_counted(node) for name in node.allocatable
        }
        extended = sorted(filter(self._is_extended, offered))
        names = ("cpu", "memory", *([CARDS] if self._cards.resources else []), *extended)
        self.resources: tuple[str, ...] = names[:_MOST_RESOURCES]
        self._of_node: dict[int, Amounts] = {}
        self.total: Amounts = (0.0,) * len(self.resources)
        self._held: dict[QueueOwner, OwnerUse] = {}
        self._charged: dict[str, tuple[QueueOwner, Amounts]] = {}  # by pod UID
        for row in range(len(state.nodes)):
            self._follow_node(row)
        for uid in state.seat_of:
            self._charge(state.pods[uid])

    # Inside

    def _charge(self, pod: PodInfo) -> None:
        before = self._charged.get(pod.uid)
        # Where it sits is decided: another annotation does not take it to another queue.
        member = self._queue_of.of(pod) if before is None else before[0]
        if member is None:
            return
        seat = self._state.seat_of.get(pod.uid)
        amounts = self.demand(pod, None if seat is None else self._state.nodes[seat.node])
        if before is not None:
            if before[1] == amounts:
                return
            self._release(pod.uid)
        self._charged[pod.uid] = member, amounts
        self._add(member, 1, amounts)

    def _charge_alike(self, pods: Sequence[PodInfo]) -> None:
        """Pods that took their seats just now and request the same."""
        if not self._queue_of.takes_any_of(pods[0].scheduler_name):
            return
        if self._cards.of_pod(pods[0], None):  # a share by memory is another one on each node
            for pod in pods:
                self._charge(pod)
            return
        amounts = self.demand(pods[0])
        n_pods: dict[QueueOwner, int] = {}
        for pod in pods:
            member = None if pod.uid in self._charged else self._queue_of.of(pod)
            if member is not None:
                self._charged[pod.uid] = member, amounts
                n_pods[member] = n_pods.get(member, 0) + 1
        for member, n in n_pods.items():
            self._add(member, n, tuple(n * one for one in amounts))

    def _release(self, uid: str) -> None:
        charged = self._charged.pop(uid, None)
        if charged is not None:
            self._add(charged[0], -1, tuple(-one for one in charged[1]))

    def _add(self, member: QueueOwner, n_pods: int, amounts: Amounts) -> None:
        held = self._held.get(member)
        if held is None:
            self._held[member] = OwnerUse(n_pods, amounts)
        elif held.n_pods + n_pods <= 0:
            del self._held[member]  # and what rounding has left of it
        else:
            self._held[member] = OwnerUse(held.n_pods + n_pods, _sum(held.amounts, amounts))

    def _follow_node(self, row: int) -> None:
        node = self._state.nodes[row] if row < len(self._state.nodes) else None
        had_own = bool(self._own)
        if node is not None and self._counts(node):
            self._own.add(row)
        else:
            self._own.discard(row)
        if bool(self._own) != had_own:
            self.rebuild()
            return
        before = self._of_node.pop(row, ())
        now: Amounts = ()
        if node is not None and self._is_counted(node):
            if len(self.resources) < _MOST_RESOURCES and any(
                name not in self.resources and self._is_extended(name) for name in node.allocatable
            ):
                self.rebuild()  # pods may hold some of it already
                return
            now = self._of_node[row] = tuple(
                self._cards.of_node(node) if name == CARDS else node.allocatable.get(name, 0.0)
                for name in self.resources
            )
        if now != before:
            self.room_changes += 1
            self.total = _sum(_sum(self.total, now), tuple(-one for one in before))

    def _is_extended(self, resource: str) -> bool:
        return "/" in resource and resource not in self._cards.resources


def _sum(one: Amounts, other: Amounts) -> Amounts:
    if len(one) < len(other):
        one, other = other, one
    return tuple(a + b for a, b in zip(one, (*other, *(0.0,) * (len(one) - len(other))), strict=True))


class ShareGauges(Collector):
    """Exports the shares of queues as of the scrape; any thread may collect."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    def collect(self) -> Iterator[Metric]:
        pods = GaugeMetricFamily(
            "forecast_queue_owner_pods", "Pods in queues that have a node, by queue and owner.", labels=_LABELS
        )
        share = GaugeMetricFamily(
            "forecast_queue_owner_dominant_share",
            "Largest share that the owner's pods in a queue request of any resource of the cluster, 0..1.",
            labels=_LABELS,
        )
        for one in self._shares.report():
            pods.add_metric([one.queue, one.owner], one.n_pods)
            share.add_metric([one.queue, one.owner], one.share)
        yield pods
        yield share
