"""Plugin Serverless: which virtual nodes a pod may go to, and whether they come before those of the cluster or after.

Filter           virtual nodes of providers without room, all of them for pods that stay; real ones for pods with
                 the annotation place: serverless
NodePreference   serverless first: the provider whose turn it is (sharing_out.py), then the cluster's nodes;
                 cluster first: the other way round
queueing hints   who is woken by what
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint, Preferred
from extender.job.serverless.claiming import REAL
from extender.job.serverless.leaving import may_leave
from extender.job.serverless.options import First, ServerlessOptions
from extender.job.serverless.sharing_out import Offer, next_share
from extender.job.serverless.tables import ProviderTables
from extender.job.serverless.use import wanted_by, wanted_of
from extender.job.terms import Place, terms_of
from forecast.arrays import Ints
from scorer.cluster.objects import PodInfo

__all__ = ["Serverless"]

_ONLY_VIRTUAL: Final = "node(s) were not virtual, which the pod asks for"
_NEVER: Final = "node(s) were virtual, and virtual nodes are not used"
_NOT_READY: Final = "node(s) were virtual and not ready"


class Serverless:
    """Filter, NodePreference and EnqueueExtensions; reads the tables, which follow by themselves.

    `ProviderTables.on_room` is to be told to the queue as FORECAST_CHANGED.
    """

    name = "Serverless"
    woken_by = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED, EventKind.POD_LEFT, EventKind.FORECAST_CHANGED})

    def __init__(self, tables: ProviderTables, options: ServerlessOptions) -> None:
        self._tables, self._first = tables, options.first

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Unresolvable all of it: who is evicted on a virtual node is in the way of nobody but its provider's quota."""
        terms = terms_of(pod)
        is_pinned = terms.place is Place.SERVERLESS
        if self._tables.is_empty and not is_pinned:
            return ()
        numbers = self._tables.provider_of(view.n_rows)
        virtual = numbers != REAL
        rejections = list(found(~virtual, view, _ONLY_VIRTUAL, preemptible=False)) if is_pinned else []
        if self._first is First.NEVER:
            return [*rejections, *found(virtual, view, _NEVER, preemptible=False)]
        if stays := may_leave(pod, terms):
            reason = f"node(s) were virtual, and the pod {stays}"
            return [*rejections, *found(virtual, view, reason, preemptible=False)]
        left, wanted = virtual & view.state.alive, wanted_by(pod)
        for number in np.unique(numbers[left]).tolist():
            limit = self._tables.limit(number, wanted)
            if limit.room:
                continue
            self._tables.refused(number)
            of_provider = numbers == number
            name = self._tables.providers[number].name
            rejections += found(of_provider, view, f"node(s) of provider {name} were {limit.reason}", preemptible=False)
            left &= ~of_provider
        return [*rejections, *found(left & ~self._tables.ready(view.n_rows), view, _NOT_READY, preemptible=False)]

    def is_idle(self, pod: PodInfo, view: ClusterView) -> bool:
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
        wanted = wanted_by(pod)
        offered, offers = [], []
        for number in np.unique(numbers[~real]).tolist():
            room = self._tables.limit(number, wanted).room
            if room > 0:
                use = self._tables.uses[number]
                offered.append(number)
                offers.append(Offer(use.provider.weight, use.pods, room, use.cost_per_hour(wanted)))
        if not offers:  # not as the filter says: somebody else has changed the tables since
            return Preferred(rows[real], n_pods) if real.any() else Preferred(rows, 1)
        first, most = next_share(offers, n_pods)
        return Preferred(rows[numbers == offered[first]], most)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common."""
        return None

    # For whoever prepares for many pods

    def room_for(self, requests: Mapping[str, float], n_rows: int) -> int:
        """How many pods that request so much virtual nodes would be given before the cluster's own."""
        if self._first is not First.SERVERLESS:
            return 0
        wanted, ready = wanted_of(requests), self._tables.ready(n_rows)
        numbers = np.unique(self._tables.provider_of(n_rows)[ready])
        return sum(self._tables.limit(number, wanted).room for number in numbers[numbers != REAL].tolist())

    # EnqueueExtensions

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """See EnqueueExtensions."""
        if event.kind in (EventKind.NODE_ADDED, EventKind.NODE_CHANGED):
            return Hint.QUEUE if _is_another_node(event) else Hint.SKIP
        if self._first is First.NEVER or may_leave(pod, terms_of(pod)):
            return Hint.SKIP
        if event.kind is EventKind.POD_LEFT and event.pod is not None:
            return Hint.QUEUE if self._tables.provider_at(event.pod.node) else Hint.SKIP
        wanted = wanted_by(pod)
        has_room = any(self._tables.limit(number, wanted).room for number in range(len(self._tables.providers)))
        return Hint.QUEUE if has_room else Hint.SKIP


def _is_another_node(event: ClusterEvent) -> bool:
    node, before = event.node, event.before
    if node is None or before is None:
        return True
    return (node.labels, node.taints, node.ready) != (before.labels, before.taints, before.ready)
