"""Extended resources that a DeviceClass offers: the claim that they come to where no device plugin offers them.

    containers: {requests: {example.com/gpu: 2}} --class of example.com/gpu--> requests of a claim, one per container

Source: createRequestsAndMappings in framework/plugins/dynamicresources/extendeddynamicresources.go, and
deviceclass/extendedresourcecache in k8s.io/dynamic-resource-allocation, of Kubernetes 1.37 (KEP-5004). Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from base.arrays import Bools
from kube.decoding.pod_needs import CLASS_PREFIX
from kube.objects.objects import DeviceAsk, PodInfo
from placement.filters.filter import ClusterView
from profiles.gpu.dra.dra_objects import (
    AllocationMode,
    ClaimKey,
    ClaimSpec,
    ClassInfo,
    DeviceAlternative,
    DeviceRequest,
    ResourceClaimInfo,
)

EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims that a scheduler made for extended resources of a pod."""
_IN_MEMORY: Final = "<extended-resources>"
_LONGEST_NAME: Final = 253

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """
    claim    : as it is reckoned with until the API server has it
    mappings : container, resource and name of the request that gives the container its devices
    """

    claim: ResourceClaimInfo
    mappings: tuple[tuple[str, str, str], ...]


def classes_by_resource(classes: Iterable[ClassInfo]) -> dict[str, str]:
    """Name of the class by extended resource; of several that name the same the newest, then the first by name."""
    found: dict[str, str] = {}
    for one in sorted(classes, key=lambda one: (-one.created, one.name)):
        found[CLASS_PREFIX + one.name] = one.name
        if one.resource:
            found.setdefault(one.resource, one.name)
    return found


def backed_kinds(pod: PodInfo, classes: Mapping[str, str]) -> list[str]:
    """Resources that the pod requests and a DeviceClass offers, sorted."""
    return sorted({ask.resource for ask in pod.device_asks if ask.resource in classes}) if pod.device_asks else []


def extended_claims(
    pod: PodInfo, classes: Mapping[str, str], view: ClusterView
) -> Iterator[tuple[Bools, ExtendedClaim | None]]:
    """(n_rows,) nodes, and the claim that the pod needs there; None = device plugins offer all of it. Each node once.

    classes : name of the class by resource, of those that have one
    """
    kinds, state = backed_kinds(pod, classes), view.state
    lacking = np.zeros(view.n_rows, dtype=np.int64)  # one bit for each resource
    for bit, kind in enumerate(kinds):
        column = state.kinds.get(kind)
        offered = 0 if column is None else state.allocatable_units[:, column]
        lacking += np.where(np.broadcast_to(offered, view.n_rows) > 0, 0, 1 << bit)
    for code in np.unique(lacking).tolist():
        wanted = tuple((kind, classes[kind]) for bit, kind in enumerate(kinds) if code >> bit & 1)
        yield lacking == code, _claim_for(pod, wanted) if wanted else None


def created_key(pod: PodInfo) -> ClaimKey:
    """The claim in the API server: always the same for a pod, so that a second try makes no second claim."""
    suffix = f"-extended-resources-{hashlib.sha256(pod.uid.encode()).hexdigest()[:5]}"
    return pod.namespace, pod.name[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix


def is_in_memory(key: ClaimKey) -> bool:
    """Whether a claim for extended resources is not in the API server yet."""
    return key[1].startswith(_IN_MEMORY)


def creation(pod: PodInfo, claim: ResourceClaimInfo) -> Json:
    """The object that is posted."""
    namespace, name = created_key(pod)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    requests = [
        {
            "name": wish.name,
            "exactly": {"deviceClassName": wish.device_class, "allocationMode": "ExactCount", "count": wish.count},
        }
        for request in claim.spec.requests
        for wish in request.wishes
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {EXTENDED: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }


def mapping_status(claim: ClaimKey, mappings: Iterable[tuple[str, str, str]]) -> Json:
    """status of the pod: which container has the devices of which request."""
    named = [
        {"containerName": container, "resourceName": kind, "requestName": request}
        for container, kind, request in mappings
    ]
    return {"extendedResourceClaimStatus": {"requestMappings": named, "resourceClaimName": claim[1]}}


def _claim_for(pod: PodInfo, classes: tuple[tuple[str, str], ...]) -> ExtendedClaim:
    spec, mappings = _requests(pod.device_asks, classes)
    name = f"{_IN_MEMORY}/{pod.uid}"
    claim = ResourceClaimInfo(namespace=pod.namespace, name=name, uid=name, spec=spec, extended_for=pod.uid)
    return ExtendedClaim(claim, mappings)


@lru_cache(maxsize=1024)
def _requests(
    asks: tuple[DeviceAsk, ...], classes: tuple[tuple[str, str], ...]
) -> tuple[ClaimSpec, tuple[tuple[str, str, str], ...]]:
    """Pods of one template share one ClaimSpec: answers about it are kept by identity."""
    requests: list[DeviceAlternative] = []
    mappings: list[tuple[str, str, str]] = []
    for kind, device_class in classes:
        of_kind = [ask for ask in asks if ask.resource == kind]
        running = {ask.number: _wish(ask, device_class) for ask in of_kind if not ask.is_starting}
        mappings += [(ask.container, kind, running[ask.number].name) for ask in of_kind if not ask.is_starting]
        own: list[DeviceAlternative] = []
        named: list[tuple[str, str]] = []
        for ask in of_kind:
            if ask.is_starting:
                used, left = _reused(ask, running)
                named += [(ask.container, name) for name in used]
                if left > 0:
                    own.append(replace(_wish(ask, device_class), count=left))
                    named.append((ask.container, own[-1].name))
        # Init containers run one after the other: the largest request serves them all.
        if own:
            largest = max(own, key=lambda wish: wish.count)
            requests.append(largest)
            others = {wish.name for wish in own}
            named = [(container, largest.name if name in others else name) for container, name in named]
        requests += running.values()
        mappings += [(container, kind, name) for container, name in named]
    requests.sort(key=lambda wish: wish.name)
    return ClaimSpec(tuple(DeviceRequest(wish.name, (wish,)) for wish in requests)), tuple(mappings)


def _wish(ask: DeviceAsk, device_class: str) -> DeviceAlternative:
    name = f"container-{ask.number}-request-{ask.place}"
    return DeviceAlternative(name=name, device_class=device_class, mode=AllocationMode.EXACT_COUNT, count=ask.count)


def _reused(ask: DeviceAsk, running: Mapping[int, DeviceAlternative]) -> tuple[list[str], int]:
    """Requests of later containers whose devices an init container may use before them, and how many it lacks."""
    used, left = [], ask.count
    for number in sorted(running):
        if number >= ask.number and left > 0:
            used.append(running[number].name)
            left -= running[number].count
    return used, left
