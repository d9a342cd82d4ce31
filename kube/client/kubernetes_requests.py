"""What to ask the API server for: paths, queries and representations of a list and a watch. No I/O.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.decoding.watched_kinds import Watched

# Plain JSON second: both have metadata in the same place.
_PARTIAL = "application/json;as={};g=meta.k8s.io;v=v1,application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """A GET: path below the server's address, query, and the Accept header."""

    path: str
    accept: str
    query: Mapping[str, str] = field(default_factory=dict)


def list_request(watched: Watched[Any], *, limit: int, continue_token: str = "") -> Request:
    """One page of a consistent list; limit 0 = everything in one answer."""
    query = {**watched.query, **({"limit": str(limit)} if limit else {})}
    if continue_token:
        query["continue"] = continue_token
    return Request(watched.path, _accept(watched, "PartialObjectMetadataList"), query)


def watch_request(watched: Watched[Any], resource_version: str, *, timeout_seconds: int) -> Request:
    """All changes after a resource version, with bookmarks; the server ends the stream after `timeout_seconds`."""
    query = {
        **watched.query,
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    }
    return Request(watched.path, _accept(watched, "PartialObjectMetadata"), query)


def _accept(watched: Watched[Any], partial: str) -> str:
    return _PARTIAL.format(partial) if watched.metadata_only else "application/json"
