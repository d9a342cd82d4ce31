"""What the loops keep where several replicas place at once: who owns which node, and who decides about a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubernetes.client import ApiClient

from kube.leader_election.lease import running_time
from kube.leader_election.lease_set import LeaseSet
from kube.objects.objects import PodInfo
from placement.machine_groups.membership import BORROW
from scheduler.handle import Handle, ProfileParts
from scheduler.queue.queued_pods import unit_by_owner
from scheduler.shards.alone_leader import AloneLeader
from scheduler.shards.foreign_pods import ForeignPods
from scheduler.shards.node_moves import NodeMoves
from scheduler.shards.one_decider import DecidedAlone, OneDecider, WideTerms
from scheduler.shards.ownership import NodeOwnership
from scheduler.shards.responsibility import Responsibility, WholeGangs
from scheduler.shards.shard_leases import shard_names


@dataclass(frozen=True, slots=True)
class ShardLeases:
    """leads: whether this replica holds the Lease of the one that decides alone; api: for nodes that change hands."""

    leases: LeaseSet
    api: ApiClient
    leads: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ShardTables:
    """
    held           : the Leases that decide
    ownership      : among the filters of all profiles, and asked before each binding
    responsibility : which waiting pods are placed here
    stale          : called, under the lock, when one that is placed elsewhere may have become ours without a change of
                     its own, or the other way round
    foreign        : which events of pods need not be decoded
    moves          : of nodes, to and from other replicas
    leader         : whether this replica decides about pods that only one may decide about
    alone          : keeps what was decided as the leader from being bound by one that leads no more
    """

    held: ShardLeases
    ownership: NodeOwnership
    responsibility: Responsibility
    foreign: ForeignPods
    moves: NodeMoves
    leader: AloneLeader
    alone: DecidedAlone
    stale: list[Callable[[], None]]


def shard_tables(handle: Handle, profiles: Mapping[str, ProfileParts], held: ShardLeases) -> ShardTables:
    """Attached to the tables of the scorer, under their lock. profiles: by name, of those that run here"""
    scorer, cluster, settings = handle.scorer, handle.cluster, handle.settings
    options, names = settings.shards, shard_names(settings.leader_election, settings.shards)
    stale = list[Callable[[], None]]()

    def look_again() -> None:
        for listener in stale:
            listener()

    def may_use(shard: int) -> bool:
        return held.leases.holds(names[shard])

    ownership = NodeOwnership(
        cluster, options.count, may_use=may_use, settle=1.5 * settings.leader_election.duration, clock=running_time
    )
    terms = WideTerms(cluster, handle.index.namespaces, look_again)
    whole_gangs = WholeGangs(cluster, look_again)
    for follower in (ownership, terms, whole_gangs):
        scorer.tables.attach((), follower)
    tenants, gangs = handle.tenants, handle.gangs

    def has_quota(namespace: str) -> bool:
        return tenants is not None and tenants.quotas.ledger.tree.has_namespace(namespace)

    alone = {
        settings.scheduler_names[name]: one.decided_alone
        for name, one in profiles.items()
        if one.decided_alone is not None
    }

    def by_profile(pod: PodInfo) -> str:
        reason = alone.get(pod.scheduler_name)
        return "" if reason is None else reason(pod)

    def decides(namespace: str, scheduler_name: str, annotations: Mapping[str, str]) -> bool:
        """What `decider` may say of a pod of which no more is known."""
        return held.leads() and (
            bool(terms)
            or bool(handle.class_resources)
            or BORROW in annotations
            or has_quota(namespace)
            or scheduler_name in alone
        )

    decider = OneDecider(
        terms,
        class_resources=handle.class_resources,
        has_quota=has_quota,
        by_profile=by_profile,
    )
    if tenants is not None:
        tenants.quotas.on_change.append(look_again)
    leader = AloneLeader(held.leads)
    responsibility = Responsibility(
        cluster,
        held.leases.identity,
        passes=options.passes,
        shard_of=ownership.shard,
        unit_of=unit_by_owner if gangs is None else gangs.unit_of,
        reason=decider.reason,
        gangs=whole_gangs,
        leads=leader.decides_alone,
        is_leader=held.leads,
    )
    follows_all = bool(settings.queues or settings.share_nodes)
    foreign = ForeignPods(
        cluster.state,
        frozenset(settings.scheduler_names.values()),
        follows_all=lambda: follows_all or not ownership.has_shards or leader.follows_all(),
        owns=ownership.may_own,
        places=responsibility.places_plain,
        decides=decides,
        holds_rooms=lambda: len(cluster.rooms) > 0,
    )
    moves = NodeMoves(
        held.api,
        ownership,
        locked=scorer.tables.reading,
        may_act=may_use,
        loan=options.loan,
        most=options.moves,
        clock=running_time,
        wall=scorer.tables.clock,
    )
    return ShardTables(held, ownership, responsibility, foreign, moves, leader, DecidedAlone(held.leads), stale)
