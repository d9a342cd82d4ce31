"""Bytes of the API server -> objects: a page of a list, a line of a watch, one object.

Only the fields that matter are decoded, straight into typed structures (wire.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw

from forecast.errors import InputError
from scorer.cluster import wire, wire_storage
from scorer.cluster.object_decoding import job_info, namespace_info, node_info, pod_info, replica_set_info
from scorer.cluster.objects import JobInfo, NamespaceInfo, NodeInfo, PodInfo, ReplicaSetInfo
from scorer.cluster.storage_decoding import (
    attachment_info,
    capacity_info,
    claim_info,
    csi_driver_info,
    csi_node_info,
    storage_class_info,
    volume_info,
)
from scorer.cluster.storage_objects import StorageObject

__all__ = [
    "SCORED_KINDS",
    "ApiObject",
    "EventType",
    "Kind",
    "ListPage",
    "UndecodableObject",
    "WatchEvent",
    "decode_event",
    "decode_list",
    "decode_object",
    "decode_pod",
]

ApiObject = NodeInfo | PodInfo | ReplicaSetInfo | JobInfo | NamespaceInfo | StorageObject

T = TypeVar("T")

_POD = msgspec.json.Decoder(wire.PodJson)
_METADATA_ONLY = msgspec.json.Decoder(wire.MetadataOnly)
_LIST = msgspec.json.Decoder(wire.ListJson)
_WATCH = msgspec.json.Decoder(wire.WatchJson)
_STATUS = msgspec.json.Decoder(wire.StatusJson)
_BOOKMARK = msgspec.json.Decoder(wire.ListMetadata)

_REFUSED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InputError)
_UNWRITABLE = (msgspec.EncodeError, TypeError, ValueError, OverflowError, RecursionError)


class UndecodableObject(InputError):
    """The JSON is not such an object. reason: what is wrong, and where."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"{what} cannot be read: {reason}")


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
    Kind.JOBS: job_info,
    Kind.NAMESPACES: namespace_info,
}


class _Whole(Protocol):
    """What all typed structures of whole objects have."""

    @property
    def metadata(self) -> wire.Metadata: ...


W = TypeVar("W", bound=_Whole)


def _whole(
    structure: type[W], make: Callable[[W], ApiObject]
) -> Callable[[bytes | Raw], tuple[ApiObject, wire.Metadata]]:
    """How an object is decoded of which more than metadata is read."""
    decoder = msgspec.json.Decoder(structure)

    def decode(body: bytes | Raw) -> tuple[ApiObject, wire.Metadata]:
        decoded = decoder.decode(body)
        return make(decoded), decoded.metadata

    return decode


_FROM_WHOLE: Final = {
    Kind.PODS: _whole(wire.PodJson, pod_info),
    Kind.NODES: _whole(wire.NodeJson, node_info),
    Kind.VOLUMES: _whole(wire_storage.VolumeObjectJson, volume_info),
    Kind.CLAIMS: _whole(wire_storage.ClaimObjectJson, claim_info),
    Kind.STORAGE_CLASSES: _whole(wire_storage.StorageClassJson, storage_class_info),
    Kind.CSI_NODES: _whole(wire_storage.CsiNodeJson, csi_node_info),
    Kind.CSI_DRIVERS: _whole(wire_storage.CsiDriverJson, csi_driver_info),
    Kind.STORAGE_CAPACITIES: _whole(wire_storage.CapacityJson, capacity_info),
    Kind.VOLUME_ATTACHMENTS: _whole(wire_storage.VolumeAttachmentJson, attachment_info),
}


class EventType(Enum):
    """`type` of a watch event. https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes"""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list.

    continue_token : '' = the last page
    undecodable    : why items were left out, one sentence each
    """

    objects: list[ApiObject]
    resource_version: str
    continue_token: str
    undecodable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch. object is None for BOOKMARK and ERROR; code, message: of the Status an ERROR carries."""

    type: EventType
    object: ApiObject | None
    resource_version: str
    code: int = 0
    message: str = ""


def decode_list(kind: Kind, body: bytes) -> ListPage:
    """A page of a list. One bad item does not cost the others; UndecodableObject if it is no list at all."""
    page = _decode(_LIST, body, f"list of {kind.value}")
    objects: list[ApiObject] = []
    undecodable: list[str] = []
    for item in page.items or ():
        try:
            objects.append(decode_object(kind, item)[0])
        except UndecodableObject as error:
            undecodable.append(str(error))
    metadata = page.metadata or wire.ListMetadata()
    return ListPage(objects, metadata.resource_version, metadata.continue_ or "", tuple(undecodable))


def decode_event(kind: Kind, line: bytes) -> WatchEvent:
    """One line of a watch. Raises UndecodableObject."""
    event = _decode(_WATCH, line, f"watch event of {kind.value}")
    try:
        event_type = EventType(event.type)
    except ValueError as error:
        raise UndecodableObject(
            f"watch event of {kind.value}",
            f"its type is {event.type[:40]!r}, known are {', '.join(t.value for t in EventType)}",
        ) from error
    if event_type is EventType.ERROR:
        status = _decode(_STATUS, event.object, "status of a watch error")
        return WatchEvent(event_type, None, "", status.code, status.message or status.reason)
    if event_type is EventType.BOOKMARK:
        status = _decode(_STATUS, event.object, f"bookmark of {kind.value}")
        bookmark = _decode(_BOOKMARK, status.metadata, f"bookmark of {kind.value}")
        return WatchEvent(event_type, None, bookmark.resource_version)
    decoded, resource_version = decode_object(kind, event.object)
    return WatchEvent(event_type, decoded, resource_version)


def decode_object(kind: Kind, body: bytes | Raw) -> tuple[ApiObject, str]:
    """One object of a kind, and its resourceVersion. Raises UndecodableObject."""
    try:
        if (decode := _FROM_WHOLE.get(kind)) is not None:
            decoded, metadata = decode(body)
            return decoded, metadata.resource_version or ""
        metadata = _METADATA_ONLY.decode(body).metadata
        return _FROM_METADATA[kind](metadata), metadata.resource_version or ""
    except _REFUSED as error:
        raise UndecodableObject(_name_of(kind, body), str(error)) from error


def decode_pod(body: bytes | Mapping[str, Any]) -> PodInfo:
    """One Pod as a user posts it: it may lack uid (then namespace/name) and namespace ("default").

    Raises UndecodableObject.
    """
    if not isinstance(body, bytes):
        try:
            body = msgspec.json.encode(body)
        except _UNWRITABLE as error:
            raise UndecodableObject("Pod", str(error)) from error
    pod = _decode(_POD, body, "Pod")
    if pod.kind not in (None, "", "Pod"):
        raise UndecodableObject("Pod", f"the object is a {pod.kind[:40]}; send the Pod itself")
    try:
        return pod_info(pod)
    except _REFUSED as error:
        raise UndecodableObject(f"Pod {pod.metadata.name}", str(error)) from error


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw, what: str) -> T:
    try:
        return decoder.decode(body)
    except _REFUSED as error:
        raise UndecodableObject(what, str(error)) from error


def _name_of(kind: Kind, body: bytes | Raw) -> str:
    """The object's kind and, where that much can be read, its namespace and name, for the error."""
    try:
        metadata = _METADATA_ONLY.decode(body).metadata
    except _REFUSED:
        return kind.singular
    return f"{kind.singular} {metadata.namespace or ''}{'/' if metadata.namespace else ''}{metadata.name}"
