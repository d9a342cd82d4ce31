"""What can be listed and watched: where it is found in the API, how much of it is asked for, and how it is decoded.

The kinds that every scheduler knows are `decoding.Kind`; a resource of ours, or a single object, is one more of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from base.errors import InputError
from kube.decoding import wire

T = TypeVar("T")
D = TypeVar("D")

_LIST: Final = msgspec.json.Decoder(wire.ListJson)
_WATCH: Final = msgspec.json.Decoder(wire.WatchJson)
_STATUS: Final = msgspec.json.Decoder(wire.StatusJson)
_BOOKMARK: Final = msgspec.json.Decoder(wire.ListMetadata)

REFUSED: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InputError)
"""What decoding raises when something is not what it should be."""

_SURROGATES: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Halves of a character stand alone in the group: Go reads each as U+FFFD, and one of them would cost a whole list."""


class _NameJson(msgspec.Struct):
    name: str
    namespace: str | None = None


class _NamedJson(msgspec.Struct):
    """What names an object for people, if the rest of its metadata cannot be read."""

    metadata: _NameJson


_NAMED: Final = msgspec.json.Decoder(_NamedJson)


class UndecodableObject(InputError):
    """The JSON is not such an object. reason: what is wrong, and where."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"{what} cannot be read: {reason}")


@dataclass(frozen=True, slots=True)
class Watched(Generic[T]):
    """One resource of the API.

    plural, singular : its names, for messages: pods, Pod
    path             : of its list, all namespaces or one
    decode           : one object -> what matters of it, and its resourceVersion; raises DecodeError, InputError
    metadata_only    : nothing but metadata is read, so nothing else is asked for
    query            : what narrows the list, such as {"fieldSelector": "metadata.name=policies"}
    optional         : the resource may not be installed: where its list is not found, there are no objects
    other_versions   : the same resource in other versions of the API, tried in turn where the one before is not found
    """

    plural: str
    singular: str
    path: str
    decode: Callable[[bytes | Raw], tuple[T, str]]
    metadata_only: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    other_versions: tuple[Watched[T], ...] = ()

    def at_next_version(self) -> Watched[T]:
        """The next of its versions; the one that it is comes last."""
        first, *rest = (*self.other_versions, replace(self, other_versions=()))
        return replace(first, optional=self.optional, other_versions=tuple(rest))

    @property
    def group(self) -> str:
        """API group of the resource, '' = the core group."""
        parts = self.path.split("/")
        return parts[2] if parts[1] == "apis" else ""

    def decoded(self, body: bytes | Raw) -> tuple[T, str]:
        """One object, and its resourceVersion. Raises UndecodableObject, which names the object."""
        try:
            return self.decode(body)
        except REFUSED as error:
            raise UndecodableObject(self._name_of(body), str(error)) from error

    def _name_of(self, body: bytes | Raw) -> str:
        """Kind and, where that much can be read, namespace and name, for the error."""
        try:
            metadata = _NAMED.decode(body).metadata
        except REFUSED:
            return self.singular
        return f"{self.singular} {metadata.namespace or ''}{'/' if metadata.namespace else ''}{metadata.name}"


def first_served(versions: Iterable[Watched[T]]) -> Watched[T]:
    """An optional resource, in the first of these versions that the API server serves."""
    first, *others = versions
    return replace(first, optional=True, other_versions=tuple(others))


class EventType(Enum):
    """`type` of a watch event. https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes"""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list.

    continue_token : '' = the last page
    undecodable    : why items were left out, one sentence each
    """

    objects: list[T]
    resource_version: str
    continue_token: str
    undecodable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch. object is None for BOOKMARK and ERROR; code, message: of the Status an ERROR carries."""

    type: EventType
    object: T | None
    resource_version: str
    code: int = 0
    message: str = ""


def decode_page(watched: Watched[T], body: bytes) -> ListPage[T]:
    """A page of a list. One bad item does not cost the others; UndecodableObject if it is no list at all."""
    page = decoded(_LIST, body, f"list of {watched.plural}")
    objects: list[T] = []
    undecodable: list[str] = []
    for item in page.items or ():
        try:
            objects.append(watched.decoded(item)[0])
        except UndecodableObject as error:
            undecodable.append(str(error))
    metadata = page.metadata or wire.ListMetadata()
    return ListPage(objects, metadata.resource_version, metadata.continue_ or "", tuple(undecodable))


def decode_watch_line(watched: Watched[T], line: bytes) -> WatchEvent[T]:
    """One line of a watch. Raises UndecodableObject."""
    event = decoded(_WATCH, line, f"watch event of {watched.plural}")
    try:
        event_type = EventType(event.type)
    except ValueError as error:
        raise UndecodableObject(
            f"watch event of {watched.plural}",
            f"its type is {event.type[:40]!r}, known are {', '.join(t.value for t in EventType)}",
        ) from error
    if event_type is EventType.ERROR:
        status = decoded(_STATUS, event.object, "status of a watch error")
        return WatchEvent(event_type, None, "", status.code, status.message or status.reason)
    if event_type is EventType.BOOKMARK:
        status = decoded(_STATUS, event.object, f"bookmark of {watched.plural}")
        bookmark = decoded(_BOOKMARK, status.metadata, f"bookmark of {watched.plural}")
        return WatchEvent(event_type, None, bookmark.resource_version)
    found, resource_version = watched.decoded(event.object)
    return WatchEvent(event_type, found, resource_version)


def decoded(decoder: msgspec.json.Decoder[D], body: bytes | Raw, what: str) -> D:
    """What a decoder makes of it. Raises UndecodableObject."""
    try:
        return decoder.decode(body)
    except REFUSED as error:
        mended = _SURROGATES.sub(lambda match: b"\\ufffd" if match[1] else match[0], bytes(body))
        if mended != bytes(body):
            return decoded(decoder, mended, what)
        raise UndecodableObject(what, str(error)) from error
