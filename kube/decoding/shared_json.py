"""Pieces of JSON that many pods have in common, decoded once: labels, resources, and what follows from them.

Pods of one service say the same about labels and resources, byte for byte. Decoding that once saves most of the time
and memory. What is shared must not be changed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from forecast.service_key import Owner
from kube.decoding import wire, wire_base
from kube.objects.eviction_annotations import EVICTION_ANNOTATIONS
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion
from kube.objects.objects import ANNOTATION_PREFIX, SHARING_PLUGIN_PREFIX
from kube.objects.pod_requests import (
    NO_RESOURCES,
    ContainerResources,
    PodTotals,
    Resources,
    pod_totals,
)
from kube.objects.quantity import parse_quantity

T = TypeVar("T")

# Longer pieces are not kept: a client that creates pods could fill the cache with gigabytes.
_LONGEST_SHARED: Final = 2048
_SHARED_PIECES: Final = 16384

_NULL: Final = bytes(wire_base.NOTHING)

_resources_decoder = msgspec.json.Decoder(wire.ResourcesJson | None)
_amounts_decoder = msgspec.json.Decoder(wire_base.Amounts | None)
_node_claims_decoder = msgspec.json.Decoder(list[wire.NodeClaimJson] | None)
_string_map_decoder = msgspec.json.Decoder(wire_base.StringMap | None)


def string_map(raw: Raw) -> Mapping[str, str]:
    """Labels. A null value is an empty text, as in Go."""
    return _string_map(bytes(raw))


def own_annotations(raw: Raw) -> Mapping[str, str]:
    """Annotations that matter here; others' can be large and are not even decoded."""
    piece = bytes(raw)
    if _OUR_PREFIX not in piece and _SHARING_PREFIX not in piece:
        return _NO_ANNOTATIONS
    return {k: v for k, v in _string_map(piece).items() if k.startswith((ANNOTATION_PREFIX, SHARING_PLUGIN_PREFIX))}


def pod_annotations(raw: Raw) -> Mapping[str, str]:
    """Those of `own_annotations`, and those that say whether the pod may be evicted."""
    piece = bytes(raw)
    if not any(prefix in piece for prefix in _EVICTION_PREFIXES):
        return own_annotations(raw)
    wanted = (ANNOTATION_PREFIX, SHARING_PLUGIN_PREFIX)
    return {k: v for k, v in _string_map(piece).items() if k in EVICTION_ANNOTATIONS or k.startswith(wanted)}


def quantities(amounts: wire_base.Amounts | None) -> dict[str, float]:
    """Resource name -> base units."""
    return {sys.intern(name): parse_quantity(amount) for name, amount in (amounts or {}).items()}


@lru_cache(maxsize=_SHARED_PIECES)
def shared_owner(kind: str, name: str) -> Owner:
    """One Owner for all pods of a controller."""
    return Owner(kind, name)


def totals(spec: wire.PodSpec, status: wire.PodStatus, version: KubernetesVersion = NEWEST) -> PodTotals:
    """Effective requests of a pod by the rules of a version, from the pieces of JSON that determine them."""
    statuses = {s.name: s for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    containers = tuple(_container_pieces(c, statuses) for c in spec.containers or ())
    init_containers = tuple(_container_pieces(c, statuses) for c in spec.init_containers or ())
    level = (bytes(spec.resources), bytes(status.resources), bytes(status.allocated_resources), False)
    overhead = bytes(spec.overhead)
    # https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
    infeasible = any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions or ())
    length = len(overhead)
    for a, b, c, _ in (*containers, *init_containers, level):
        length += len(a) + len(b) + len(c)
    decide = _totals if length <= _LONGEST_SHARED else _totals.__wrapped__
    claimed = _claimed(bytes(status.node_allocatable_resource_claim_statuses))
    return decide(containers, init_containers, level, overhead, infeasible, claimed, version)


_OUR_PREFIX: Final = ANNOTATION_PREFIX.rstrip("/").encode()  # JSON may write the slash as \/
_EVICTION_PREFIXES: Final = tuple({key.partition("/")[0].encode() for key in EVICTION_ANNOTATIONS})
_SHARING_PREFIX: Final = SHARING_PLUGIN_PREFIX.encode()
_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}

_ContainerPieces = tuple[bytes, bytes, bytes, bool]
"""spec.resources, status.resources, status.allocatedResources as JSON, and whether it is a sidecar."""


def _shared(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """`decode`, with its results for pieces of ordinary length remembered."""
    remembered = lru_cache(maxsize=_SHARED_PIECES)(decode)
    return lambda piece: remembered(piece) if len(piece) <= _LONGEST_SHARED else decode(piece)


@_shared
def _string_map(piece: bytes) -> Mapping[str, str]:
    return {sys.intern(k): sys.intern(v or "") for k, v in (_string_map_decoder.decode(piece) or {}).items()}


def _container_pieces(container: wire.Container, statuses: Mapping[str, wire.ContainerStatus]) -> _ContainerPieces:
    status = statuses.get(container.name)
    return (
        bytes(container.resources),
        bytes(status.resources) if status else _NULL,
        bytes(status.allocated_resources) if status else _NULL,
        container.restart_policy == "Always",
    )


@lru_cache(maxsize=_SHARED_PIECES)
def _totals(
    containers: tuple[_ContainerPieces, ...],
    init_containers: tuple[_ContainerPieces, ...],
    level: _ContainerPieces,
    overhead: bytes,
    infeasible: bool,
    claimed: tuple[tuple[str, float], ...],
    version: KubernetesVersion,
) -> PodTotals:
    regular = [_container(pieces) for pieces in containers]
    initial = [_container(pieces) for pieces in init_containers]
    whole = _container(level)
    pod_level = whole if level[0] != _NULL else None
    return pod_totals(
        regular,
        initial,
        overhead=_amounts(overhead),
        pod_level=pod_level,
        reported=whole,
        resize_infeasible=infeasible,
        claimed=dict(claimed),
        version=version,
    )


def _container(pieces: _ContainerPieces) -> ContainerResources:
    spec, actual, allocated, is_sidecar = pieces
    return ContainerResources(
        spec=resources(spec),
        actual=resources(actual) if actual != _NULL else None,
        allocated=_amounts(allocated),
        is_sidecar=is_sidecar,
    )


def resources(piece: bytes) -> Resources:
    """`resources` of a container."""
    asked = _resources_decoder.decode(piece)
    if asked is None:
        return NO_RESOURCES
    return Resources(quantities(asked.requests), quantities(asked.limits))


def _claimed(piece: bytes) -> tuple[tuple[str, float], ...]:
    """By resource, what the devices of a pod's claims take of its node (addDRANodeAllocatableClaimResources of v1.37).
    Not the piece is shared, which names the claims of one pod.

    From v1.38 the part of an init container counts only while it runs; here it counts always, which is no less.
    """
    if piece == _NULL:
        return ()
    taken = defaultdict[str, float](float)
    for claim in _node_claims_decoder.decode(piece) or ():
        for mapped in claim.mapping or ():
            taken[mapped.name] += parse_quantity(mapped.quantity or 0)
        for extra in claim.overhead or ():
            per_container = len(claim.containers or ()) * parse_quantity(extra.per_container or 0)
            taken[extra.name] += parse_quantity(extra.per_pod or 0) + per_container
    checked = Resources({sys.intern(name): round(value, 9) for name, value in taken.items()}, {})
    return tuple(sorted(checked.requests.items()))


def _amounts(piece: bytes) -> Mapping[str, float]:
    return quantities(_amounts_decoder.decode(piece))
