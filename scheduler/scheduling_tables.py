"""What the scheduling loops keep in addition to the scorer's tables: made before the cluster is read, so that all of it
follows from the start, and the sources of what only they read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kubernetes.client import ApiClient

from cluster.assumed_pods import AssumedPods
from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRooms
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import ResourceSource, source_of
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudgets
from placement.filters.filter import ClusterView
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.node_rule_settings import NodeRuleOptions
from placement.node_rules import NodeRules, node_rules
from placement.pod_groups.group_apis import APIS, GroupApi
from placement.pod_importance import priority_of
from scheduler.gangs.directory import GangDirectory
from scheduler.gangs.group_decoding import WATCHED_GROUPS
from scheduler.gangs.group_watch import GroupPhases, PodGroupSink
from scheduler.handle import Handle, ProfileParts
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.queue_tables import OwnNodes, QueueTables, queue_tables
from scheduler.schedule_settings import LoopSettings
from scheduler.shard_tables import ShardLeases, ShardTables, shard_tables
from scheduler.tenant_tables import TenantTables, tenant_tables
from scorer.scorer import Scorer


@dataclass(frozen=True, slots=True)
class ScheduleTables:
    """
    rules           : about nodes, for every profile
    gangs           : None = PodGroups are not heeded
    phases          : of PodGroups; empty, where they are not heeded
    ended           : called with nominations that ended, see NominatedPods
    queues          : None = all pods go by priority and age
    tenants         : None = quotas are not heeded
    profiles        : parts of those that run here, by name; `common`: what each of them has in addition
    class_resources : see Handle
    rooms           : held for pods that are still to come
    shards          : None = this process places on all nodes
    """

    view: ClusterView
    rules: NodeRules
    assumed: AssumedPods
    fit: NodeResourcesFit
    gangs: GangDirectory | None
    phases: Mapping[GroupApi, GroupPhases]
    budgets: DisruptionBudgets
    nominated: NominatedPods
    sitting: SittingPods
    common: ProfileParts
    ended: list[Callable[[PodInfo, str], None]]
    queues: QueueTables | None
    tenants: TenantTables | None
    profiles: Mapping[str, ProfileParts]
    class_resources: Mapping[str, str]
    rooms: HeldRooms
    shards: ShardTables | None = None

    def n_assumed(self) -> int:
        """Pods that are assumed to be bound; without the lock of the tables."""
        return len(self.assumed)

    def groups_by_phase(self) -> Mapping[str, int]:
        """PodGroups of both APIs; without the lock of the tables."""
        return sum((Counter(phases.counts()) for phases in self.phases.values()), Counter[str]())

    def longest_gang_wait(self) -> float:
        """Seconds that a complete gang has been tried in vain; 0 = none is. Without the lock of the tables."""
        return 0.0 if self.gangs is None else self.gangs.longest_wait()

    def source(self, api: ApiClient) -> ResourceSource:
        """Follows PodGroups, disruption budgets and quotas, without which nothing is placed; not started yet."""
        return source_of(api, self._awaited())

    def subscriptions(self) -> tuple[Subscription[Any], ...]:
        """Resources that only these tables, those of the rules and those of the profiles read."""
        of_profiles = (one.subscriptions for one in (self.common, *self.profiles.values()))
        return (*self._awaited(), *self.rules.subscriptions(), *chain.from_iterable(of_profiles))

    def _awaited(self) -> tuple[Subscription[Any], ...]:
        budgets = Subscription(WATCHED_BUDGETS, self.budgets)
        quotas = () if self.tenants is None else (self.tenants.sink.subscription(),)
        return (budgets, *quotas, *(Subscription(WATCHED_GROUPS[api], phases) for api, phases in self.phases.items()))


def loop_tables(
    handle: Handle, profiles: Mapping[str, ProfileParts], common: ProfileParts, held: ShardLeases | None = None
) -> ScheduleTables:
    """Return tables that are attached to those of the scorer, which has not read its cluster yet; under their lock.

    profiles : by name, of those that run here
    common   : what each of them has in addition
    held     : says which nodes are ours; None = all are
    """
    scorer, cluster, settings, gangs = handle.scorer, handle.cluster, handle.settings, handle.gangs
    ended, budgets = list[Callable[[PodInfo, str], None]](), DisruptionBudgets()
    ours = frozenset(settings.scheduler_names.values())

    def notify_ended(pod: PodInfo, node: str) -> None:
        for listener in ended:
            listener(pod, node)

    fit = NodeResourcesFit(device_class_resources=handle.class_resources)
    shards = None if held is None else shard_tables(handle, profiles, held)
    nominated = NominatedPods(
        cluster.state, fit=fit, is_ours=lambda pod: pod.scheduler_name in ours, ended=notify_ended
    )
    standing = {
        settings.scheduler_names[name]: one.standing for name, one in profiles.items() if one.standing is not None
    }
    sitting = SittingPods(
        cluster.state,
        budgets,
        gangs,
        standing_of=lambda pod: standing.get(pod.scheduler_name, priority_of)(pod),
    )
    parts = (common, *profiles.values())
    for follower in (*(follower for one in parts for follower in one.followers), nominated, sitting):
        scorer.tables.attach((), follower)
    of_tenants = () if handle.tenants is None else (handle.tenants.quotas.ledger,)
    return ScheduleTables(
        view=handle.view(*of_tenants, *(table for one in parts for table in one.view_tables)),
        rules=handle.rules,
        assumed=cluster.assumed,
        fit=fit,
        gangs=gangs,
        phases={}
        if gangs is None
        else {api: GroupPhases(PodGroupSink(gangs, scorer.tables.reading, api)) for api in APIS},
        budgets=budgets,
        nominated=nominated,
        sitting=sitting,
        common=common,
        ended=ended,
        queues=handle.queues,
        tenants=handle.tenants,
        profiles=profiles,
        class_resources=handle.class_resources,
        rooms=cluster.rooms,
        shards=shards,
    )


def handle_of(
    scorer: Scorer,
    cluster: AssumingCluster,
    settings: LoopSettings,
    rule_options: NodeRuleOptions,
    nodes: OwnNodes,
    *,
    due_of: Callable[[PodInfo], float],
    job_name: str | None,
    session: ApiSession | None,
) -> Handle:
    """Return what profiles are built with; index, gangs, rules and queues follow the tables. Raises InputError.

    due_of, job_name : see queue_tables
    session          : that claims are written with; None = they are not
    """
    class_resources: dict[str, str] = {}
    ours = frozenset(settings.scheduler_names.values())
    index = PlacementIndex(cluster.state)
    scorer.tables.attach(INDEXED_KINDS, index)
    gangs = None
    if settings.gangs.enabled:
        gangs = GangDirectory(
            cluster.state,
            options=settings.gangs,
            is_ours=lambda pod: pod.scheduler_name in ours,
            is_assumed=cluster.assumed.__contains__,
            clock=scorer.tables.clock,
        )
        scorer.tables.attach((), gangs)
    rules = node_rules(cluster, rule_options, gangs, clock=scorer.tables.clock, class_resources=class_resources)
    for follower in rules.followers():
        scorer.tables.attach((), follower)
    tenants = tenant_tables(scorer, cluster, settings, nodes, rules.devices.options)
    shared = tenants.quotas.ledger if tenants is not None and settings.tenants.fair else None
    return Handle(
        scorer=scorer,
        cluster=cluster,
        settings=settings,
        rules=rules,
        index=index,
        gangs=gangs,
        nodes=nodes,
        queues=queue_tables(
            scorer, settings, nodes, rules.devices.options, due_of=due_of, job_name=job_name, ledger=shared
        ),
        tenants=tenants,
        class_resources=class_resources,
        session=session,
    )
