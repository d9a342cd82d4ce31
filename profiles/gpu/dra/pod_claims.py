"""The claims of a pod: are they there, may the pod use them, and which of them have yet to be allocated?

Source: PreEnqueue, PreFilter and foreachPodResourceClaim in framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from base.arrays import Bools
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dra_objects import MOST_CONSUMERS, Allocation, ClaimKey, ResourceClaimInfo
from profiles.gpu.dra.extended_resources import ExtendedClaim, backed_kinds, extended_claims
from profiles.gpu.dra.unsupported import refusal_of, unusable


@dataclass(frozen=True, slots=True)
class MissingClaim:
    """Why a pod cannot be looked at. key: of the claim that is not there, or is going; None = that has no name yet."""

    reason: str
    key: ClaimKey | None = None


@dataclass(frozen=True, slots=True)
class PodClaims:
    """
    allocated : with the allocation that each has, or is about to have
    open      : to be allocated on the node that the pod gets
    """

    allocated: tuple[tuple[ResourceClaimInfo, Allocation], ...]
    open: tuple[ResourceClaimInfo, ...]


def names_of(pod: PodInfo) -> list[str]:
    """Of the claims that it needs, each once; '' = one that is still to be made."""
    return list(dict.fromkeys(one.claim for one in pod.resource_claims if one.claim is not None))


def asks_for_devices(pod: PodInfo, table: DraTable) -> bool:
    """By claims, or by an extended resource that a DeviceClass offers."""
    return bool(names_of(pod)) or bool(backed_kinds(pod, table.class_resources))


def open_claims(
    claims: PodClaims, pod: PodInfo, table: DraTable, view: ClusterView
) -> Iterator[tuple[Bools, tuple[ResourceClaimInfo, ...], ExtendedClaim | None]]:
    """(n_rows,) nodes, the claims to allocate there, and the last of that if it is for extended resources."""
    for nodes, extended in extended_claims(pod, table.class_resources, view):
        yield nodes, claims.open if extended is None else (*claims.open, extended.claim), extended


def claims_of_pod(pod: PodInfo, table: DraTable) -> list[ResourceClaimInfo] | MissingClaim:
    """All of them, in the pod's order."""
    found = []
    for name in names_of(pod):
        if not name:
            waiting = next(one.name for one in pod.resource_claims if one.claim == "")
            return MissingClaim(f"pod claim {waiting}: ResourceClaim not created yet")
        claim = table.claim(pod.namespace, name)
        if claim is None:
            return MissingClaim(f'resourceclaim "{name}" not found', (pod.namespace, name))
        if claim.terminating:
            return MissingClaim(f'resourceclaim "{name}" is being deleted', (pod.namespace, name))
        found.append(claim)
    return found


def usable_claims(pod: PodInfo, table: DraTable) -> PodClaims | str:
    """Sorted into what has been allocated and what has not, or why the pod fits nowhere."""
    claims = claims_of_pod(pod, table)
    if isinstance(claims, MissingClaim):
        return claims.reason
    if (made := table.extended_claim_of(pod)) is not None:
        return f"resource claim {made.name} for extended resources is from an earlier attempt and has yet to go"
    allocated, to_allocate = [], []
    for claim in claims:
        flight = table.in_flight.get(claim.key)
        users = {pod.uid, *(one.uid for one in claim.consumers), *(flight.users if flight is not None else ())}
        if len(users) > MOST_CONSUMERS:
            return f"resourceclaim in use: {claim.name} is reserved for {MOST_CONSUMERS} pods"
        if flight is not None and not flight.users:
            return f"resource claim {claim.namespace}/{claim.name} is in the process of being given back"
        allocation = table.allocation_of(claim)
        if allocation is not None:
            if why := unusable(claim, table.inventory.device):
                return why
            allocated.append((claim, allocation))
        elif why := refusal_of(claim, table.class_of):
            return why
        else:
            to_allocate.append(claim)
    return PodClaims(tuple(allocated), tuple(to_allocate))
