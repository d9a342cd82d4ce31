"""What a Lease says, read with tolerance and written as client-go does.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

_LONGEST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """
    holder      : identity, '' = none
    seconds     : time without a change during which other replicas leave it alone
    acquired    : when its holder took it, as the Lease has it; '' = never
    renewed     : what its holder writes anew each time; only whether it changes matters
    transitions : how often it went to another holder
    version     : resourceVersion: a write on top of another one is refused
    annotations : what its holder says in addition
    """

    holder: str
    seconds: float
    acquired: str
    renewed: str
    transitions: int
    version: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    def is_same(self, other: LeaseRecord) -> bool:
        """Return whether the record was not acquired, renewed or released in between; changed labels do not count."""
        return replace(self, version="", annotations={}) == replace(other, version="", annotations={})


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec | None = None


class _LeaseList(msgspec.Struct):
    items: list[_Lease]


def read_lease(body: bytes) -> LeaseRecord | None:
    """None = it is no Lease. A duration that is missing or absurd becomes one that ends."""
    try:
        return _record(msgspec.json.decode(body, type=_Lease))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_leases(body: bytes) -> dict[str, LeaseRecord] | None:
    """Return the Leases of a LeaseList by name; None = it is no such list."""
    try:
        leases = msgspec.json.decode(body, type=_LeaseList).items
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return {lease.metadata.name: _record(lease) for lease in leases}


def _record(lease: _Lease) -> LeaseRecord:
    spec = lease.spec or _Spec()
    return LeaseRecord(
        holder=spec.holder_identity or "",
        seconds=min(max(float(spec.lease_duration_seconds or 0), 0.0), _LONGEST_SECONDS),
        acquired=spec.acquire_time or "",
        renewed=spec.renew_time or "",
        transitions=max(spec.lease_transitions or 0, 0),
        version=lease.metadata.resource_version,
        annotations=lease.metadata.annotations or {},
    )


def lease_body(
    namespace: str,
    name: str,
    *,
    holder: str,
    seconds: float,
    now: float,
    before: LeaseRecord | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """A Lease that is held from `now` (unix seconds) on, or still; holder '' gives it back.

    before : what it says now; None = there is none yet
    labels, annotations : all that it is to have
    """
    moment = datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    is_ours_still = before is not None and before.holder == holder
    transitions = 0 if before is None else before.transitions
    if before is not None and holder and not is_ours_still:
        transitions += 1
    metadata: dict[str, object] = {"namespace": namespace, "name": name}
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    if before is not None:
        metadata["resourceVersion"] = before.version
    return msgspec.json.encode(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(seconds)) if holder else 1,
                "acquireTime": before.acquired if before is not None and is_ours_still and before.acquired else moment,
                "renewTime": moment,
                "leaseTransitions": transitions,
            },
        }
    )
