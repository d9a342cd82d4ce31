"""By which Leases a replica of `schedule` acts: that of the leader, and those of the shards that it owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kube.client.cluster_access import ClusterAccess
from kube.leader_election.lease import Lease
from kube.leader_election.lease_set import LeaseSet
from profiles.schedule_settings import ScheduleSettings
from scheduler.shard_tables import ShardLeases
from scheduler.shards.shard_leases import LEASES_LABEL

_LEASE_CONNECTIONS: Final = 10
"""As many Leases of shards as are written at once, and some."""


def leader_lease(
    settings: ScheduleSettings, access: ClusterAccess, may_lead: Callable[[], bool], identity: str
) -> Lease | None:
    """Return the Lease of the leader; None = it is not to be taken: a dry run must not keep a scheduler from its work.

    may_lead : see Lease
    """
    if settings.dry_run or not settings.leader_election.enabled:
        return None
    # Connections of its own: a renewal must not wait for anything else.
    return Lease(access.client(), settings.leader_election, identity=identity, may_lead=may_lead)


def shard_leases(
    settings: ScheduleSettings, access: ClusterAccess, identity: str, leads: Callable[[], bool]
) -> ShardLeases | None:
    """Return the Leases by which replicas share the nodes; None = one replica places on all nodes."""
    if settings.dry_run or not settings.shards.enabled:
        return None
    label = LEASES_LABEL, settings.leader_election.name
    api = access.client(connections=_LEASE_CONNECTIONS)
    leases = LeaseSet(api, settings.leader_election, label=label, identity=identity)
    return ShardLeases(leases, access.client(), leads)


def leads_by(settings: ScheduleSettings, lease: Lease | None) -> Callable[[], bool]:
    """Return what says whether this replica leads; without a Lease it does, and a dry run never does."""
    if settings.dry_run:
        return lambda: False
    return (lambda: True) if lease is None else lease.may_write
