"""What the sources of the live cluster need and show: where objects go, their waiting times, how they are doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

from base.backoff import Backoff
from kube.decoding.decoding import ApiObject, Kind
from kube.decoding.watched_kinds import Watched

T_contra = TypeVar("T_contra", contravariant=True)


class ResourceSink(Protocol[T_contra]):
    """Where the objects of one resource go. Called from one thread; an exception makes them be listed again."""

    def replace(self, objects: Sequence[T_contra]) -> None:
        """These are all; what is not among them is gone."""

    def put(self, obj: T_contra) -> None:
        """An object is new or has changed."""

    def delete(self, obj: T_contra) -> None:
        """An object is gone; this was its last state."""


@runtime_checkable
class OptionalSink(ResourceSink[T_contra], Protocol[T_contra]):
    """A sink that distinguishes a resource that is not installed from a resource without objects."""

    def absent(self) -> None:
        """The API server does not serve the resource; instead of `replace` with nothing."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subscription(Generic[T]):
    """A resource that some tables read in addition to the scorer's kinds, and the sink that takes its objects. The
    objects come from the watch of an API server (`source_of`) or from a cluster file (`ClusterObjects.of`).
    """

    watched: Watched[T]
    sink: ResourceSink[T]


class Sink(Protocol):
    """Where objects of several kinds go. Called from one thread per kind; an exception makes it be listed again."""

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """These are all objects of the kind; what is not among them is gone."""

    def put(self, kind: Kind, obj: ApiObject) -> None:
        """An object is new or has changed."""

    def delete(self, kind: Kind, obj: ApiObject) -> None:
        """An object is gone; this was its last state."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    watch_seconds       : a stream is ended by the server after a random time in this range, which spreads the load
    watch_read_seconds  : silence after which a connection counts as dead. Bookmarks come every minute or two; of a kind
                          that does not change they may fail to (etcd without --watch-progress-notify-interval)
    relist_after        : from the first event that could not be decoded until the kind is listed again
    """

    connect_seconds: float = 10.0
    list_read_seconds: float = 60.0
    watch_read_seconds: float = 180.0
    watch_seconds: tuple[int, int] = (300, 600)
    relist_after: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """How the watch of one resource is doing.

    plural           : its name
    synced           : a complete list has been applied
    last_contact     : unix seconds when the server last sent something usable, None = never
    lists, watches   : complete lists applied, streams opened
    events           : applied (bookmarks do not count)
    undecodable      : times that an object could not be read: such objects are missing or out of date in the sink
    failures         : attempts since something last went well; last_error: why the latest failed, '' if none did
    """

    plural: str
    synced: bool = False
    last_contact: float | None = None
    lists: int = 0
    watches: int = 0
    events: int = 0
    undecodable: int = 0
    resource_version: str = ""
    event_version: str = ""
    failures: int = 0
    last_error: str = ""

    @property
    def relists(self) -> int:
        """Complete lists after the first."""
        return max(0, self.lists - 1)
