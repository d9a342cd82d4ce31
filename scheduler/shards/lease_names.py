"""Names of the Leases of shards and replicas, and the annotations in which their holders speak to each other."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from kube.leader_election.options import LeaseOptions
from kube.objects.objects import ANNOTATION_PREFIX
from scheduler.shards.options import ShardOptions

LEASES_LABEL: Final = f"{ANNOTATION_PREFIX}shards-of"
"""Label of all of them: the name of the leader's Lease."""

COUNT: Final = f"{ANNOTATION_PREFIX}shards"
"""Number of shards that the holder parts the nodes into."""

ROOM: Final = f"{ANNOTATION_PREFIX}room"
"""Share of the cluster that the shard has left, see room.py."""

PODS_VERSION: Final = f"{ANNOTATION_PREFIX}pods-version"
"""resourceVersion of the last event of a pod that the holder has seen."""


def replica_prefix(lease: LeaseOptions) -> str:
    """Return what the names of all replicas' Leases begin with."""
    return f"{lease.name}-replica-"


def replica_name(lease: LeaseOptions, identity: str) -> str:
    """Return the name of the Lease that says that a replica lives."""
    return replica_prefix(lease) + blake2b(identity.encode(), digest_size=8).hexdigest()


def shard_names(lease: LeaseOptions, options: ShardOptions) -> list[str]:
    """Return the names of the Leases of all shards, by number."""
    return [f"{lease.name}-shard-{number}" for number in range(options.count)]
