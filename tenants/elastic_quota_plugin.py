"""Filter ElasticQuota: keeps a pod from every node while its tenant's quota does not admit it.

    quota      --no-->  all nodes are rejected; evicting pods of less importance of the tenant may help
    QuotaLimit          of like pods no more go together than the quota admits

PreFilter of pkg/capacityscheduling/capacity_scheduling.go in scheduler-plugins. Ours admits a pod within its tenant's
min whatever others have borrowed: whether a node has room is for other filters to say, and preemption makes some.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Ints
from forecast.calendar import SLOT_MINUTES
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.plugins import NodePreference, Preferred
from tenants.quota_tree import NO_QUOTA
from tenants.quotas import Quotas

NAME: Final = "ElasticQuota"

_SLOT_SECONDS: Final = 60.0 * SLOT_MINUTES


class ElasticQuotaFilter(PlainFilter):
    """Admits a pod or keeps it from every node, by the quota of its tenant."""

    name = NAME
    woken_by = frozenset(
        {
            EventKind.POD_LEFT,
            EventKind.POD_CHANGED,
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,
        }
    )

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """All nodes or none."""
        denied = self._quotas.denial(pod)
        if denied is None:
            return ()
        every = np.ones(view.n_rows, dtype=bool)
        return found(every, view, self._quotas.sentence(pod, denied), preemptible=True, about_pod=True)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """For how long it would borrow, in half hours: like pods may run for different times."""
        quotas = self._quotas
        if quotas.tree.row_of(pod) == NO_QUOTA:
            return None
        return int(quotas.loan_seconds(pod) // _SLOT_SECONDS)

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """QuotaLimit hands in no more pods than the quota admits."""
        return True

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Pods of any quota that leave may help, others do not."""
        if event.kind not in (EventKind.POD_LEFT, EventKind.POD_CHANGED) or event.pod is None:
            return Hint.QUEUE
        return Hint.SKIP if self._quotas.tree.row_of(event.pod) == NO_QUOTA else Hint.QUEUE


class QuotaLimit(NodePreference):
    """Implements NodePreference: prefers no node, and limits how many like pods go together."""

    name = "QuotaLimit"

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """All of the nodes. The first pod is admitted: the filter has said so."""
        return Preferred(rows, n_pods if n_pods == 1 else max(1, self._quotas.most_admitted(pod, n_pods)))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Return nothing: the filter says it."""
        return None
