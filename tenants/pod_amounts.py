"""What a pod takes of a quota: its requests in whole units, cards in thousandths, and bytes a second by the forecast.

cpu, memory, ephemeral-storage, ...        what the pod requests
resources that mean cards                  whole cards and shares, by the rules that place them (docs/use/gpu.md)
forecast-scheduler.io/disk, network, log   bytes a second: what the pod declares, else its predicted peak
pods                                       1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from cluster.predicted.declared_use import declared_amounts
from cluster.tables.columns import request_units, whole_units
from kube.objects.objects import NodeInfo, PodInfo
from tenants.elastic_quota import RATES
from tenants.quota_tree import CARD_UNITS, CARDS, MOST_UNITS

Units = tuple[int, ...]
"""(n_resources,) as QuotaTree.resources names them."""

CardsOf = Callable[[PodInfo, NodeInfo | None], float]
"""Cards that a pod takes on a node; None = it waits."""

PODS: Final = "pods"


class PodAmounts:
    """Asked under the lock of the tables."""

    def __init__(self, cluster: AssumingCluster, cards_of: CardsOf) -> None:
        self._cluster, self._cards_of = cluster, cards_of

    def of(self, pod: PodInfo, resources: tuple[str, ...], node: NodeInfo | None = None) -> Units:
        """Return what the pod takes. node: where it sits; None = it waits."""
        return tuple([self._one(pod, name, node) for name in resources])

    def depends_on_node(self, pod: PodInfo) -> bool:
        """Return whether cards of different nodes may count differently."""
        return self._cards_of(pod, None) > 0

    def _one(self, pod: PodInfo, name: str, node: NodeInfo | None) -> int:
        if name == CARDS:
            return min(round(CARD_UNITS * self._cards_of(pod, node)), MOST_UNITS)
        if (amount := pod.requests.get(name)) is not None:
            return request_units(name, amount)
        if (rate := RATES.get(name)) is not None:
            return min(whole_units(name, self._rate(pod, rate)), MOST_UNITS)
        return 1 if name == PODS else 0

    def _rate(self, pod: PodInfo, resource: int) -> float:
        for one, amount in declared_amounts(pod):
            if one == resource:
                return amount
        predicted = self._cluster.predicted
        if predicted is None:
            return 0.0
        return max(0.0, float(predicted.load.peak_of_pod(self._cluster.profile(pod), resource)))
