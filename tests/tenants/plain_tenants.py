"""What tenants use and are owed, counted anew from lists of pods: the plain model that histories are checked against.

Pods ask for whole cores, one each, so that any free core takes any pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from kube.objects.objects import NodeInfo, PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL
from tenants.elastic_quota import ElasticQuota


@dataclass(frozen=True)
class PlainTenants:
    """Cores, by tenant. Everything is counted from the pods whenever it is asked for."""

    quotas: Mapping[str, ElasticQuota]
    nodes: Sequence[NodeInfo]
    pods: Sequence[PodInfo]

    @classmethod
    def of(cls, quotas: Iterable[ElasticQuota], nodes: Sequence[NodeInfo], pods: Iterable[PodInfo]) -> PlainTenants:
        return cls({one.name: one for one in quotas}, nodes, tuple(pods))

    def path(self, tenant: str) -> list[str]:
        found = [tenant]
        while self.quotas[found[-1]].parent:
            found.append(self.quotas[found[-1]].parent)
        return found

    def below(self, tenant: str) -> list[str]:
        return [one for one in self.quotas if tenant in self.path(one)]

    def children(self, tenant: str) -> list[str]:
        """Of '' those at the top."""
        return [name for name, one in self.quotas.items() if one.parent == tenant]

    def least(self, tenant: str) -> int:
        """Its min, and at least those of its children together."""
        return max(
            int(self.quotas[tenant].guaranteed["cpu"]), sum(self.least(child) for child in self.children(tenant))
        )

    def most(self, tenant: str) -> float:
        return self.quotas[tenant].most.get("cpu", inf)

    def used(self, tenant: str) -> int:
        return sum(bool(pod.node) for pod in self.pods if pod.namespace in self.below(tenant))

    def waiting(self, tenant: str) -> list[PodInfo]:
        """Of the tenant itself."""
        return [pod for pod in self.pods if pod.namespace == tenant and not pod.node]

    def free(self) -> int:
        return int(sum(node.allocatable["cpu"] for node in self.nodes)) - sum(bool(pod.node) for pod in self.pods)

    def borrowed(self, tenant: str) -> int:
        return max(0, self.used(tenant) - self.least(tenant))

    def wanted(self, tenant: str) -> float:
        """What it has and waits for, as far as it may have that."""
        if children := self.children(tenant):
            return min(self.most(tenant), sum(self.wanted(child) for child in children))
        return min(max(self.most(tenant), self.used(tenant)), self.used(tenant) + len(self.waiting(tenant)))

    def committed(self, tenant: str) -> float:
        """What it does not lend."""
        held = sum(self.committed(child) for child in self.children(tenant)) or self.used(tenant)
        return max(held, min(self.least(tenant), self.wanted(tenant)))

    def is_admitted(self, tenant: str) -> bool:
        """Whether one more pod may be placed, by its quota and all above it."""
        if any(self.used(one) + 1 > self.most(one) for one in self.path(tenant)):
            return False
        if self.used(tenant) + 1 <= self.least(tenant):
            return True
        growth = max(0, self.used(tenant) + 1 - self.committed(tenant))
        for above in self.path(tenant)[1:]:
            total = sum(self.committed(child) for child in self.children(above)) + growth
            growth = 0 if total <= self.least(above) else max(0, total - self.committed(above))
        at_top = self.children("")
        return sum(map(self.committed, at_top)) + growth <= sum(map(self.least, at_top))

    def can_be_taken_back_for(self, tenant: str) -> int:
        """Cores that others borrow and that the tenant, or one above it, may have back for one more pod."""
        most = 0
        for level in self.path(tenant):
            if self.used(level) + 1 > self.least(level):
                continue
            others = [one for one in self.children(self.quotas[level].parent) if one != level]
            most = max(most, sum(self._taken_back_from(one) for one in others))
        return most

    def _taken_back_from(self, tenant: str) -> int:
        """Of a tenant and those below it: of pods whose tenants are all beyond their min up to here."""
        if not self.borrowed(tenant):
            return 0
        own = sum(bool(pod.node) for pod in self.pods if pod.namespace == tenant)
        return min(self.borrowed(tenant), own + sum(self._taken_back_from(one) for one in self.children(tenant)))

    def is_single(self, pod: PodInfo) -> bool:
        return GROUP_LABEL not in pod.labels
