"""The next patch of a claim, decided from the claim as it is now. No I/O.

    not allocated --PATCH metadata: finalizer--> --PATCH status: allocation, reservedFor--> ready
    allocated ------PATCH status: reservedFor----------------------------------------------> ready
    ready ----------PATCH status: reservedFor without the pod (and no allocation)----------> released

Source: bindClaim, Unreserve and PostFilter in framework/plugins/dynamicresources/dynamicresources.go. Every patch names
the resourceVersion that it was decided by: the server refuses it (409) if another client has written since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from kube.objects.objects import PodInfo
from profiles.gpu.dra.allocation_status import MadeAllocation
from profiles.gpu.dra.dra_decoding import GROUP
from profiles.gpu.dra.dra_objects import FINALIZER, MOST_CONSUMERS, ClaimKey, Consumer, ResourceClaimInfo

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """A merge patch. what: for metrics."""

    what: str
    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class OutdatedClaim:
    """The claim is not what the decision was made for any more."""

    reason: str


def claim_path(key: ClaimKey, subresource: str = "") -> str:
    """Where the claim is."""
    return f"{GROUP}/namespaces/{key[0]}/resourceclaims/{key[1]}{subresource}"


def next_write(
    claim: ResourceClaimInfo, uid: str, made: MadeAllocation | None, pod: PodInfo
) -> Write | OutdatedClaim | None:
    """What is to be written next so that a pod may use a claim; None = it may.

    uid  : of the claim that was decided about
    made : what it is to get; None = it had been allocated
    """
    what = f"claim {claim.namespace}/{claim.name}"
    if claim.uid != uid or claim.terminating:
        return OutdatedClaim(f"{what} got deleted in the meantime")
    if made is None and claim.allocation is None:
        return OutdatedClaim(f"{what} got deallocated elsewhere in the meantime")
    if made is not None and claim.allocation is not None and claim.allocation.devices != made.allocation.devices:
        return OutdatedClaim(f"{what} got allocated elsewhere in the meantime")
    if claim.allocation is not None and claim.is_reserved_for(pod.uid):
        return None
    if len(claim.consumers) >= MOST_CONSUMERS and not claim.is_reserved_for(pod.uid):
        return OutdatedClaim(f"{what} is reserved for {MOST_CONSUMERS} pods already")
    consumers = [one for one in claim.consumers if one.uid != pod.uid] + [Consumer(pod.name, pod.uid)]
    if claim.allocation is not None or made is None:
        return _patch_status("reserve", claim, reservedFor=_consumers(consumers))
    if FINALIZER not in claim.finalizers:
        return _patch("finalizer", claim, "", {"finalizers": [*claim.finalizers, FINALIZER]}, {})
    return _patch_status("allocate", claim, allocation=made.as_json, reservedFor=_consumers(consumers))


def giving_back(claim: ResourceClaimInfo, uid: str, pod_uid: str, *, deallocate: bool) -> Write | None:
    """The claim without the pod; None = it is already.

    deallocate : without its allocation, too, if no other pod may use it
    """
    if claim.uid != uid:
        return None
    others = [one for one in claim.consumers if one.uid != pod_uid]
    is_to_go = deallocate and not others and claim.allocation is not None
    if len(others) == len(claim.consumers) and not is_to_go:
        return None
    if is_to_go:
        return deallocation(claim)
    return _patch_status("unreserve", claim, reservedFor=_consumers(others) or None)


def deallocation(claim: ResourceClaimInfo) -> Write:
    """Neither allocated nor reserved. The finalizer stays, as upstream leaves it to the claims' controller."""
    return _patch_status("deallocate", claim, allocation=None, reservedFor=None, devices=None)


def without_finalizer(claim: ResourceClaimInfo) -> Write | None:
    """So that it goes once it is deleted; None = nothing of ours keeps it."""
    if FINALIZER not in claim.finalizers:
        return None
    return _patch("finalizer", claim, "", {"finalizers": [one for one in claim.finalizers if one != FINALIZER]}, {})


def _consumers(consumers: Iterable[Consumer]) -> list[Json]:
    return [
        {"resource": one.resource, "name": one.name, "uid": one.uid} | ({"apiGroup": one.group} if one.group else {})
        for one in consumers
    ]


def _patch_status(what: str, claim: ResourceClaimInfo, **status: Any) -> Write:
    return _patch(what, claim, "/status", {}, {"status": status})


def _patch(what: str, claim: ResourceClaimInfo, subresource: str, metadata: Json, rest: Json) -> Write:
    named = {"uid": claim.uid, "resourceVersion": claim.resource_version} | metadata
    return Write(what, claim_path(claim.key, subresource), msgspec.json.encode({"metadata": named} | rest))
