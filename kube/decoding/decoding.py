"""Bytes of the API server -> objects: a page of a list, a line of a watch, one object.

Only the fields that matter are decoded, straight into typed structures (wire.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw

from kube.decoding import wire, wire_storage
from kube.decoding.jobs import JobInfo, JobJson, job_info
from kube.decoding.object_decoding import namespace_info, node_info, pod_info, replica_set_info
from kube.decoding.storage_decoding import (
    attachment_info,
    capacity_info,
    claim_info,
    csi_driver_info,
    csi_node_info,
    storage_class_info,
    volume_info,
)
from kube.decoding.watched_kinds import (
    REFUSED,
    ListPage,
    UndecodableObject,
    Watched,
    WatchEvent,
    decode_page,
    decode_watch_line,
    decoded,
)
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion
from kube.objects.objects import NamespaceInfo, NodeInfo, PodInfo, ReplicaSetInfo
from kube.objects.storage_objects import StorageObject

ApiObject = NodeInfo | PodInfo | ReplicaSetInfo | JobInfo | NamespaceInfo | StorageObject

_POD = msgspec.json.Decoder(wire.PodJson)
_METADATA_ONLY = msgspec.json.Decoder(wire.MetadataOnly)

_UNWRITABLE = (msgspec.EncodeError, TypeError, ValueError, OverflowError, RecursionError)


class Kind(Enum):
    """What is listed and watched; the value is its plural name in the API."""

    NODES = "nodes"
    PODS = "pods"
    REPLICA_SETS = "replicasets"
    JOBS = "jobs"
    NAMESPACES = "namespaces"
    VOLUMES = "persistentvolumes"
    CLAIMS = "persistentvolumeclaims"
    STORAGE_CLASSES = "storageclasses"
    CSI_NODES = "csinodes"
    CSI_DRIVERS = "csidrivers"
    STORAGE_CAPACITIES = "csistoragecapacities"
    VOLUME_ATTACHMENTS = "volumeattachments"

    @property
    def singular(self) -> str:
        """As in the `kind` of an object."""
        return _SINGULAR[self]


_SINGULAR: Final = {
    Kind.NODES: "Node",
    Kind.PODS: "Pod",
    Kind.REPLICA_SETS: "ReplicaSet",
    Kind.JOBS: "Job",
    Kind.NAMESPACES: "Namespace",
    Kind.VOLUMES: "PersistentVolume",
    Kind.CLAIMS: "PersistentVolumeClaim",
    Kind.STORAGE_CLASSES: "StorageClass",
    Kind.CSI_NODES: "CSINode",
    Kind.CSI_DRIVERS: "CSIDriver",
    Kind.STORAGE_CAPACITIES: "CSIStorageCapacity",
    Kind.VOLUME_ATTACHMENTS: "VolumeAttachment",
}

SCORED_KINDS: Final = (Kind.NODES, Kind.PODS, Kind.REPLICA_SETS, Kind.JOBS)
"""What the scorer needs; filters need the others, too."""

_FROM_METADATA: Final[Mapping[Kind, Callable[[wire.Metadata], ApiObject]]] = {
    Kind.REPLICA_SETS: replica_set_info,
    Kind.NAMESPACES: namespace_info,
}


class _Whole(Protocol):
    """What all typed structures of whole objects have."""

    @property
    def metadata(self) -> wire.Metadata: ...


W = TypeVar("W", bound=_Whole)


def _whole(structure: type[W], make: Callable[[W], ApiObject]) -> Callable[[bytes | Raw], tuple[ApiObject, str]]:
    """How an object is decoded of which more than metadata is read."""
    decoder = msgspec.json.Decoder(structure)

    def decode(body: bytes | Raw) -> tuple[ApiObject, str]:
        whole = decoder.decode(body)
        return make(whole), whole.metadata.resource_version or ""

    return decode


_FROM_WHOLE: Final = {
    Kind.PODS: _whole(wire.PodJson, pod_info),
    Kind.NODES: _whole(wire.NodeJson, node_info),
    Kind.JOBS: _whole(JobJson, job_info),
    Kind.VOLUMES: _whole(wire_storage.VolumeObjectJson, volume_info),
    Kind.CLAIMS: _whole(wire_storage.ClaimObjectJson, claim_info),
    Kind.STORAGE_CLASSES: _whole(wire_storage.StorageClassJson, storage_class_info),
    Kind.CSI_NODES: _whole(wire_storage.CsiNodeJson, csi_node_info),
    Kind.CSI_DRIVERS: _whole(wire_storage.CsiDriverJson, csi_driver_info),
    Kind.STORAGE_CAPACITIES: _whole(wire_storage.StorageCapacityJson, capacity_info),
    Kind.VOLUME_ATTACHMENTS: _whole(wire_storage.VolumeAttachmentJson, attachment_info),
}


def _from_metadata(make: Callable[[wire.Metadata], ApiObject]) -> Callable[[bytes | Raw], tuple[ApiObject, str]]:
    """How an object is decoded of which only metadata is read."""

    def decode(body: bytes | Raw) -> tuple[ApiObject, str]:
        metadata = _METADATA_ONLY.decode(body).metadata
        return make(metadata), metadata.resource_version or ""

    return decode


def _watched(kind: Kind, group: str) -> Watched[ApiObject]:
    # A ReplicaSet carries a whole pod template: without what is not read a list is several times smaller.
    make = _FROM_METADATA.get(kind)
    decode = _FROM_WHOLE[kind] if make is None else _from_metadata(make)
    return Watched(kind.value, kind.singular, f"{group}/{kind.value}", decode, metadata_only=make is not None)


_GROUPS: Final = {
    "/api/v1": (Kind.NODES, Kind.PODS, Kind.NAMESPACES, Kind.VOLUMES, Kind.CLAIMS),
    "/apis/apps/v1": (Kind.REPLICA_SETS,),
    "/apis/batch/v1": (Kind.JOBS,),
    "/apis/storage.k8s.io/v1": (
        Kind.STORAGE_CLASSES,
        Kind.CSI_NODES,
        Kind.CSI_DRIVERS,
        Kind.STORAGE_CAPACITIES,
        Kind.VOLUME_ATTACHMENTS,
    ),
}

WATCHED: Final[Mapping[Kind, Watched[ApiObject]]] = {
    kind: _watched(kind, group) for group, kinds in _GROUPS.items() for kind in kinds
}
"""Where each kind is found, and how it is decoded by the rules of the newest version."""


@cache
def watched(kind: Kind, version: KubernetesVersion) -> Watched[ApiObject]:
    """WATCHED with the rules of a version; always the same value for the same version."""
    if kind is not Kind.PODS or version == NEWEST:
        return WATCHED[kind]
    return replace(WATCHED[kind], decode=_whole(wire.PodJson, partial(pod_info, version=version)))


def decode_list(kind: Kind, body: bytes, version: KubernetesVersion = NEWEST) -> ListPage[ApiObject]:
    """A page of a list, see `watched.decode_page`."""
    return decode_page(watched(kind, version), body)


def decode_event(kind: Kind, line: bytes) -> WatchEvent[ApiObject]:
    """One line of a watch, see `watched.decode_watch_line`."""
    return decode_watch_line(WATCHED[kind], line)


def decode_object(kind: Kind, body: bytes | Raw) -> tuple[ApiObject, str]:
    """One object of a kind, and its resourceVersion. Raises UndecodableObject."""
    return WATCHED[kind].decoded(body)


def decode_pod(body: bytes | Mapping[str, Any], version: KubernetesVersion = NEWEST) -> PodInfo:
    """One Pod as a user posts it: it may lack uid (then namespace/name) and namespace ("default").

    Raises UndecodableObject.
    """
    if not isinstance(body, bytes):
        try:
            body = msgspec.json.encode(body)
        except _UNWRITABLE as error:
            raise UndecodableObject("Pod", str(error)) from error
    pod = decoded(_POD, body, "Pod")
    if pod.kind not in (None, "", "Pod"):
        raise UndecodableObject("Pod", f"the object is a {pod.kind[:40]}; send the Pod itself")
    try:
        return pod_info(pod, version)
    except REFUSED as error:
        raise UndecodableObject(f"Pod {pod.metadata.name}", str(error)) from error
