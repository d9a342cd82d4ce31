"""What to ask the API server for: paths, queries and representations of a list and a watch. No I/O.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scorer.cluster.decoding import Kind

__all__ = ["Request", "list_request", "watch_request"]

_PATHS = {
    Kind.NODES: "/api/v1/nodes",
    Kind.PODS: "/api/v1/pods",
    Kind.REPLICA_SETS: "/apis/apps/v1/replicasets",
    Kind.JOBS: "/apis/batch/v1/jobs",
    Kind.NAMESPACES: "/api/v1/namespaces",
    Kind.VOLUMES: "/api/v1/persistentvolumes",
    Kind.CLAIMS: "/api/v1/persistentvolumeclaims",
    Kind.STORAGE_CLASSES: "/apis/storage.k8s.io/v1/storageclasses",
    Kind.CSI_NODES: "/apis/storage.k8s.io/v1/csinodes",
    Kind.CSI_DRIVERS: "/apis/storage.k8s.io/v1/csidrivers",
    Kind.STORAGE_CAPACITIES: "/apis/storage.k8s.io/v1/csistoragecapacities",
    Kind.VOLUME_ATTACHMENTS: "/apis/storage.k8s.io/v1/volumeattachments",
}

# Of these only metadata is used. A ReplicaSet carries a whole pod template: without it a list is
# several times smaller. Plain JSON second: both have metadata in the same place.
_METADATA_ONLY = frozenset({Kind.REPLICA_SETS, Kind.JOBS, Kind.NAMESPACES})
_PARTIAL = "application/json;as={};g=meta.k8s.io;v=v1,application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """A GET: path below the server's address, query, and the Accept header."""

    path: str
    accept: str
    query: Mapping[str, str] = field(default_factory=dict)


def list_request(kind: Kind, *, limit: int, continue_token: str = "") -> Request:
    """One page of a consistent list of all namespaces; limit 0 = everything in one answer."""
    query = {"limit": str(limit)} if limit else {}
    if continue_token:
        query["continue"] = continue_token
    return Request(_PATHS[kind], _accept(kind, "PartialObjectMetadataList"), query)


def watch_request(kind: Kind, resource_version: str, *, timeout_seconds: int) -> Request:
    """All changes after a resource version, with bookmarks; the server ends the stream after `timeout_seconds`."""
    query = {
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    }
    return Request(_PATHS[kind], _accept(kind, "PartialObjectMetadata"), query)


def _accept(kind: Kind, partial: str) -> str:
    return _PARTIAL.format(partial) if kind in _METADATA_ONLY else "application/json"
