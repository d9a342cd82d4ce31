"""Plugin Serverless: which virtual nodes a pod may go to, and whether they come before those of the cluster or after.

Filter           virtual nodes of providers without room, all of them for pods that stay; real ones for pods with
                 the annotation place: serverless
NodePreference   serverless first: the provider whose turn it is (provider_use.py), then the cluster's nodes;
                 cluster first: the other way round
queueing hints   who is woken by what
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.columns import request_units
from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.filters.taint_toleration import HARD_EFFECTS
from placement.plugins import NodePreference, Preferred
from placement.pod_groups.group_of_pod import group_of
from placement.virtual_node_settings import First, ServerlessOptions
from placement.virtual_node_table import REAL
from profiles.job.job_annotations import Place, may_leave, terms_of
from profiles.job.serverless.provider_tables import ProviderTables
from profiles.job.serverless.provider_use import Offer, next_share, wanted_by, wanted_of
from profiles.job.storm.storms import fitting, free_units

_ONLY_VIRTUAL: Final = "node(s) were not virtual, which the pod asks for"
_NEVER: Final = "node(s) were virtual, and virtual nodes are not used"
_NOT_READY: Final = "node(s) were virtual and not ready"


class Serverless(PlainFilter, NodePreference):
    """Filter and NodePreference; reads the tables, which follow by themselves.

    The queue receives `ProviderTables.on_room` as FORECAST_CHANGED.
    """

    name = "Serverless"
    woken_by = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED, EventKind.POD_LEFT, EventKind.FORECAST_CHANGED})

    def __init__(self, tables: ProviderTables, options: ServerlessOptions) -> None:
        self._tables, self._first = tables, options.first
        self._tolerated = frozenset(options.taints) if options.tolerate else frozenset()

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Return rejections, all unresolvable: a pod on a virtual node takes only its provider's quota, so evicting it
        does not help.
        """
        if self._tables.is_empty and terms_of(pod).place is not Place.SERVERLESS:
            return ()
        numbers = self._tables.provider_of(view.n_rows)
        virtual = numbers != REAL
        rejections = rejected_by_terms(pod, virtual, self._first, view)
        if any((rejection.nodes & virtual).any() for rejection in rejections):
            return rejections
        left, wanted, gang = virtual & view.state.alive, wanted_by(pod), group_of(pod) or ""
        for number in np.unique(numbers[left]).tolist():
            limit = self._tables.limit(number, wanted, gang)
            if limit.room:
                continue
            self._tables.refused(number)
            of_provider = numbers == number
            name = self._tables.providers[number].name
            rejections += found(of_provider, view, f"node(s) of provider {name} were {limit.reason}", preemptible=False)
            left &= ~of_provider
        return [*rejections, *found(left & ~self._tables.ready(view.n_rows), view, _NOT_READY, preemptible=False)]

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """No more pods are placed at once than there is room for: what it says of the first holds for all of them."""
        return True

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """The nodes of one provider, for as many pods as it has room for; or all real ones."""
        numbers = self._tables.provider_of(view.n_rows)[rows]
        real = numbers == REAL
        if real.all():
            return Preferred(rows, n_pods)
        if real.any() and self._first is not First.SERVERLESS:
            return Preferred(rows[real], n_pods)
        wanted, gang = wanted_by(pod), group_of(pod) or ""
        offered, offers = [], []
        for number in np.unique(numbers[~real]).tolist():
            room = self._tables.limit(number, wanted, gang).room
            if room > 0:
                use = self._tables.uses[number]
                offered.append(number)
                offers.append(Offer(use.provider.weight, use.pods, room, use.cost_per_hour(wanted)))
        if not offers:  # not as the filter says: the tables have changed since
            return Preferred(rows[real], n_pods) if real.any() else Preferred(rows, 1)
        first, most = next_share(offers, n_pods)
        return Preferred(rows[numbers == offered[first]], most)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common."""
        return None

    # For preparations for many pods

    def room_for(
        self,
        requests: Mapping[str, float],
        state: ClusterState,
        is_ours: Callable[[NodeInfo], bool] = lambda node: True,
    ) -> int:
        """Return how many pods with these requests virtual nodes would get before the cluster's own.

        is_ours: of nodes, whether jobs may be there. Those count that are ready and take new pods, as far as the pods
        fit there: also of providers without limits. What pods tolerate on their own is not known.
        """
        if self._first is not First.SERVERLESS or self._tables.is_empty:
            return 0
        numbers, wanted = self._tables.provider_of(state.n_rows), wanted_of(requests)
        of_use = self._of_use((numbers != REAL) & self._tables.ready(state.n_rows), state, is_ours)
        fits = np.where(of_use, _fits(requests, state), 0)
        return sum(
            min(self._tables.limit(number, wanted).room, int(fits[numbers == number].sum()))
            for number in np.unique(numbers[of_use]).tolist()
        )

    def _of_use(self, among: Bools, state: ClusterState, is_ours: Callable[[NodeInfo], bool]) -> Bools:
        """(n_rows,) of these, nodes that jobs may use."""
        of_use = np.zeros(len(among), dtype=bool)
        for row in np.flatnonzero(among).tolist():
            node = state.nodes[row]
            of_use[row] = node is not None and self._is_open(node) and is_ours(node)
        return of_use

    def _is_open(self, node: NodeInfo) -> bool:
        return not node.unschedulable and all(
            taint.effect not in HARD_EFFECTS or (taint.key in self._tolerated and taint.effect == "NoSchedule")
            for taint in node.taints
        )

    # The queue

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        if event.kind in (EventKind.NODE_ADDED, EventKind.NODE_CHANGED):
            return Hint.QUEUE if _is_another_node(event) else Hint.SKIP
        if self._first is First.NEVER or may_leave(pod, terms_of(pod)):
            return Hint.SKIP
        if event.kind is EventKind.POD_LEFT and event.pod is not None:
            return Hint.QUEUE if self._tables.provider_at(event.pod.node) else Hint.SKIP
        wanted, gang = wanted_by(pod), group_of(pod) or ""
        has_room = any(self._tables.limit(number, wanted, gang).room for number in range(len(self._tables.providers)))
        return Hint.QUEUE if has_room else Hint.SKIP


def _is_another_node(event: ClusterEvent) -> bool:
    node, before = event.node, event.before
    if node is None or before is None:
        return True
    return (node.labels, node.taints, node.ready) != (before.labels, before.taints, before.ready)


def _fits(requests: Mapping[str, float], state: ClusterState) -> Ints:
    """Return for how many pods with these requests a node has room, (n_rows,)."""
    units = {kind: request_units(kind, amount) for kind, amount in requests.items()} | {"pods": 1}
    wanted = {kind: n for kind, n in units.items() if n > 0}
    if not wanted.keys() <= state.kinds.keys():
        return np.zeros(state.n_rows, dtype=np.int64)  # a resource that no node has ever named
    free = np.stack([free_units(state, kind) for kind in wanted], axis=1)
    return fitting(free, np.fromiter(wanted.values(), dtype=np.int64))


class ByTerms(PlainFilter):
    """The part of Serverless that holds whatever room providers have. Its tables need not be kept."""

    name = "Serverless"

    def __init__(self, virtual: Callable[[], Bools], first: First) -> None:
        """virtual: (n_rows,) nodes of a provider, as they are now."""
        self._virtual, self._first = virtual, first

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return rejected_by_terms(pod, self._virtual(), self._first, view)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return terms_of(pod).place, may_leave(pod, terms_of(pod))


def rejected_by_terms(pod: PodInfo, virtual: Bools, first: First, view: ClusterView) -> list[Rejection]:
    """Virtual nodes for a pod that has to stay, all other nodes for a pod that is to leave.

    virtual : (n_rows,) nodes of a provider
    """
    terms = terms_of(pod)
    is_pinned = terms.place is Place.SERVERLESS
    rejections = list(found(~virtual, view, _ONLY_VIRTUAL, preemptible=False)) if is_pinned else []
    if first is First.NEVER:
        return [*rejections, *found(virtual, view, _NEVER, preemptible=False)]
    if stays := may_leave(pod, terms):
        return [*rejections, *found(virtual, view, f"node(s) were virtual, and the pod {stays}", preemptible=False)]
    return rejections
