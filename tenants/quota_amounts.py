"""Amounts of quotas: what a pod takes of each resource, and how people write it ("4 cores", "2.5 cards")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from cluster.predicted.pod_bounds import declared_amounts
from cluster.tables.columns import per_unit, request_units, whole_units
from kube.objects.objects import ANNOTATION_PREFIX, NodeInfo, PodInfo
from tenants.elastic_quota import RATES
from tenants.quota_tree import CARD_UNITS, CARDS, MOST_UNITS

Units = tuple[int, ...]
"""(n_resources,) as QuotaTree.resources names them."""

CardsOf = Callable[[PodInfo, NodeInfo | None], float]
"""Cards that a pod takes on a node; None = it waits."""

PODS: Final = "pods"

_GIB: Final = 2**30
_MIB: Final = 2**20
_BYTES: Final = ("memory", "ephemeral-storage")


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


def in_base_units(resource: str, units: int) -> float:
    """Return cores, bytes, bytes a second, cards or counts. resource: a column of a QuotaTree."""
    return units / CARD_UNITS if resource == CARDS else units / per_unit(resource)


def in_words(resource: str, units: int) -> str:
    """Return an amount with its unit, for people. resource: a column of a QuotaTree."""
    amount = in_base_units(resource, units)
    if resource == "cpu":
        return f"{amount:g} core{'' if amount == 1 else 's'}"
    if resource == CARDS:
        return f"{amount:g} card{'' if amount == 1 else 's'}"
    if resource in RATES or is_bytes(resource):
        return f"{in_short(resource, amount)} of {resource.removeprefix(ANNOTATION_PREFIX)}"
    return f"{amount:g} {resource}"


def in_short(resource: str, amount: float) -> str:
    """Return an amount of base units for a cell whose row names the resource."""
    if resource in RATES:
        return f"{amount / 1e6:.4g} MB/s"
    if is_bytes(resource):
        return f"{amount / _GIB:.4g} GiB" if amount >= _GIB or not amount else f"{amount / _MIB:.4g} MiB"
    return f"{amount:.6g}"


def is_bytes(resource: str) -> bool:
    """Return whether amounts of the resource are sizes."""
    return resource in _BYTES or resource.startswith("hugepages-")
