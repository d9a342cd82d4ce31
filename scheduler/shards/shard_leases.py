"""What the Leases of shards and replicas say: their names, which of the other replicas live, whether we are behind
them, and what the dead have left.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.lease_set import LeaseSet
from kube.objects.objects import ANNOTATION_PREFIX
from scheduler.loop_settings import ShardOptions

LEASES_LABEL: Final = f"{ANNOTATION_PREFIX}shards-of"
"""Label of all of them: the name of the leader's Lease."""

COUNT: Final = f"{ANNOTATION_PREFIX}shards"
"""Number of shards that the holder parts the nodes into."""

ROOM: Final = f"{ANNOTATION_PREFIX}room"
"""Share of the cluster that the shard has left, see shard_room.py."""

PODS_VERSION: Final = f"{ANNOTATION_PREFIX}pods-version"
"""resourceVersion of the last event of a pod that the holder has seen."""

_LAG_SECONDS: Final = 10.0
_DEAD_SECONDS: Final = 60.0


def replica_prefix(lease: LeaseOptions) -> str:
    """Return what the names of all replicas' Leases begin with."""
    return f"{lease.name}-replica-"


def replica_name(lease: LeaseOptions, identity: str) -> str:
    """Return the name of the Lease that says that a replica lives."""
    return replica_prefix(lease) + blake2b(identity.encode(), digest_size=8).hexdigest()


def shard_names(lease: LeaseOptions, options: ShardOptions) -> list[str]:
    """Return the names of the Leases of all shards, by number."""
    return [f"{lease.name}-shard-{number}" for number in range(options.count)]


class Peers:
    """clock: seconds, monotonic, that of the Leases"""

    def __init__(self, leases: LeaseSet, lease: LeaseOptions, clock: Callable[[], float]) -> None:
        self._leases, self._prefix, self._clock = leases, replica_prefix(lease), clock
        self._versions: dict[str, list[tuple[float, int]]] = {}
        self._expired_since: dict[str, float] = {}

    def live(self) -> set[str]:
        """Return the identities of the replicas that live, our own among them."""
        names = [name for name in self._leases.records() if name.startswith(self._prefix)]
        return {holder for name in names if (holder := self._leases.live_holder(name))}

    def lag(self, mine: int) -> str:
        """Return why our watch of pods is behind: another replica has long seen what we have not. '' = it is not.

        mine : resourceVersion that it has reached, 0 = not known
        """
        now, records, behind = self._clock(), self._leases.records(), 0
        self._versions = {name: seen for name, seen in self._versions.items() if name in records}
        for name, record in records.items():
            version = int(number_in(record.annotations.get(PODS_VERSION, "")))
            if record.holder == self._leases.identity or version <= 0:
                continue
            seen = self._versions.setdefault(name, [])
            if not seen or seen[-1][1] < version:
                seen.append((now, version))
            while len(seen) > 1 and seen[1][0] <= now - _LAG_SECONDS:
                seen.pop(0)
            if seen[0][0] <= now - _LAG_SECONDS:
                behind = max(behind, seen[0][1])
        return f"the watch of pods lags by more than {_LAG_SECONDS:g} s" if 0 < mine < behind else ""

    def other_count(self, count: int) -> str:
        """Return which live replica parts the nodes into another number of shards; '' = none does."""
        live = self.live() - {self._leases.identity}
        for record in self._leases.records().values():
            said = record.annotations.get(COUNT, "")
            if said and said != str(count) and record.holder in live:
                return (
                    f"replica {record.holder} parts the nodes into {said} shards, this one into {count}: "
                    "nothing is placed here until all have the same schedule.shards.count"
                )
        return ""

    def delete_dead(self, *, may_delete: bool) -> None:
        """Delete the Leases of replicas that are long gone. may_delete: this replica is the one that does."""
        now = self._clock()
        expired = {
            name
            for name in self._leases.records()
            if name.startswith(self._prefix) and not self._leases.live_holder(name)
        }
        self._expired_since = {name: self._expired_since.get(name, now) for name in expired}
        if may_delete:
            for name in [one for one, since in self._expired_since.items() if now - since > _DEAD_SECONDS]:
                self._leases.delete(name)


def number_in(text: str) -> float:
    """Return the number that an annotation says, -1 = it says none."""
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if 0 <= value < 1e18 else -1.0
