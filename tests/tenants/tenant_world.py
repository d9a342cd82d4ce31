"""Clusters with tenants: the loop of `schedule` over tables in memory, and the objects that come and go in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cluster.file_session import FileSession
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.disruption_budgets import DisruptionBudget
from placement.node_rule_settings import NodeRuleOptions
from placement.pod_groups.group_apis import OURS
from placement.pod_groups.group_of_pod import GROUP_LABEL
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from placement.policies.policy import OnePolicyForAll, Policy
from profiles.dry_loop import DryLoop, Planned
from profiles.schedule_settings import ScheduleSettings
from profiles.schedule_tables import schedule_tables
from scheduler.loop_settings import PreemptionOptions
from scheduler.scheduling_tables import ScheduleTables
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from tenants.elastic_quota import ElasticQuota
from tenants.ledger import QuotaLedger
from tenants.quotas import Quotas
from tenants.tenant_settings import TenantOptions
from testing.constants import with_constants
from testing.objects import pod_info
from testing.placement.views import node_named

SCHEDULER: Final = "forecast-scheduler"
NOW: Final = 1_000_000.0


def quota(
    namespace: str,
    least: float = 0.0,
    most: float | None = None,
    *,
    parent: str = "",
    lends: bool = True,
    **more: float,
) -> ElasticQuota:
    """Of CPU, named as its namespace. more: min of other resources."""
    bound = {} if most is None else {"cpu": most}
    return ElasticQuota(namespace, namespace, parent, {"cpu": least, **more}, bound, lends=lends)


def tenant_pod(
    name: str,
    tenant: str,
    *,
    cpu: float = 1.0,
    priority: int = 0,
    created: float = NOW - 1000,
    node: str = "",
    gang: str = "",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, float] | None = None,
) -> PodInfo:
    labels = {**(labels or {}), **({GROUP_LABEL: gang} if gang else {})}
    return pod_info(
        name,
        namespace=tenant,
        node=node,
        labels=labels,
        requests={"cpu": cpu, **(requests or {})},
        priority=priority,
        created=created,
        started=created if node else None,
        scheduler_name=SCHEDULER,
    )


def gang_of(tenant: str, name: str, minimum: int) -> PodGroupInfo:
    return PodGroupInfo(tenant, name, f"uid-{tenant}-{name}", 1, NOW - 1000, minima=Minima(minimum))


class TenantWorld:
    """now: unix seconds, which only `wait` moves on; evicted: names of pods that were evicted, in order."""

    def __init__(
        self,
        nodes: Iterable[NodeInfo],
        quotas: Iterable[ElasticQuota] = (),
        pods: Iterable[PodInfo] = (),
        *,
        groups: Sequence[PodGroupInfo] = (),
        budgets: Sequence[DisruptionBudget] = (),
        options: TenantOptions | None = None,
        now: float = NOW,
    ) -> None:
        self.now, self.evicted, self.n_tries = now, list[str](), 0
        self.scorer = Scorer(clock=lambda: self.now)
        settings = ScheduleSettings(
            scheduler_name=SCHEDULER,
            domain="",
            tenants=options or TenantOptions(grace=0),
            preemption=with_constants(PreemptionOptions(), protect_started=0),
        )
        self.tables: ScheduleTables = schedule_tables(self.scorer, settings, NodeRuleOptions())
        policy = Policy(scoring_policy(self.scorer.options))
        self._loop = DryLoop(settings, self.scorer, self.tables, OnePolicyForAll(policy), FileSession())
        self.tables.budgets.replace(budgets)
        if self.tables.gangs is not None:
            with self.scorer.tables.reading():
                self.tables.gangs.replace_groups(groups, OURS)
        self.set_quotas(quotas)
        self.scorer.tables.replace(Kind.NODES, list(nodes))
        self.scorer.tables.replace(Kind.PODS, list(pods))

    @property
    def quotas(self) -> Quotas:
        assert self.tables.tenants is not None
        return self.tables.tenants.quotas

    @property
    def ledger(self) -> QuotaLedger:
        return self.quotas.ledger

    @property
    def pods(self) -> dict[str, PodInfo]:
        """Return all pods that are there, by name."""
        with self.scorer.tables.reading() as cluster:
            return {pod.name: pod for pod in cluster.state.pods.values()}

    def set_quotas(self, quotas: Iterable[ElasticQuota]) -> None:
        assert self.tables.tenants is not None
        self.tables.tenants.sink.replace(tuple(quotas))

    def put(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.scorer.tables.put(Kind.PODS, pod)

    def end(self, *names: str) -> None:
        for name in names:
            self.scorer.tables.delete(Kind.PODS, self.pods[name])

    def lose_node(self, name: str) -> None:
        """The node is gone, and its pods wait anew, as their controllers make them."""
        with self.scorer.tables.reading() as cluster:
            lost = [pod for pod in cluster.state.pods.values() if pod.node == name]
            node = next(one for one in cluster.state.nodes if one is not None and one.name == name)
        for pod in lost:
            self.scorer.tables.delete(Kind.PODS, pod)
        self.scorer.tables.delete(Kind.NODES, node)
        self.put(*(replace(pod, node="", uid=f"{pod.uid}+", started=None) for pod in lost))

    def run(self) -> dict[str, Planned]:
        """One pass of the loop; what it said of each pod, by name. What was placed is bound; no controller makes
        victims anew."""
        before = self.pods
        self._loop.look_around()
        planned = self._loop.run()
        after = self.pods
        with self.scorer.tables.reading() as cluster:
            placed = [cluster.state.pods[uid] for uid in cluster.assumed.uids()]
        self.put(*(replace(pod, started=self.now) for pod in placed))
        self.evicted += [name for name in before if name not in after]
        return {one.pod.name: one for one in planned}

    def try_again(self) -> None:
        """Wake all pods that wait, as the live loop does a second after it found no victims but pods being bound."""
        self.n_tries += 1
        self.put(
            *(
                replace(pod, labels={**pod.labels, "tries": f"{self.n_tries}"})
                for pod in self.pods.values()
                if not pod.node
            )
        )

    def seats(self) -> dict[str, str]:
        """Node by name, of the pods that have one."""
        return {name: pod.node for name, pod in self.pods.items() if pod.node}

    def used(self, tenant: str, resource: str = "cpu") -> int:
        """Return whole units that the quota of a tenant counts, with those of all below it."""
        tree = self.ledger.tree
        row = next(row for row, one in enumerate(tree.quotas) if one.namespace == tenant)
        return int(self.ledger.used[row, tree.resources.index(resource)])


def nodes(n: int, *, cpu: float = 4.0, **more: float) -> list[NodeInfo]:
    return [node_named(f"n{at}", allocatable={"cpu": cpu, "memory": 2.0**34, "pods": 110.0, **more}) for at in range(n)]
