"""A template or binding as the API server has it: its spec, its status, and why it is unreadable, if it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from kube.decoding.watched_kinds import UndecodableObject, Watched

T = TypeVar("T")


class StoredCondition(Struct, rename="camel", omit_defaults=True, frozen=True):
    """status.conditions[]. https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/condition/"""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


class LastError(Struct, rename="camel", frozen=True):
    """status.lastError. pod: namespace/name; time: RFC 3339 in UTC, so that the text sorts as the time does."""

    message: str = ""
    pod: str = ""
    time: str = ""


class ObjectStatus(Struct, rename="camel", frozen=True):
    """What of a status is written by us. bindings: of templates; all that follow: of bindings."""

    conditions: tuple[StoredCondition, ...] = ()
    bindings: int | None = None
    bound_pods: int | None = None
    last_error: LastError | None = None
    template_uid: str | None = None
    template_version: int | None = None


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """object: None if it is unreadable; `problem` says why."""

    name: str
    uid: str
    generation: int
    object: T | None
    problem: str
    status: ObjectStatus

    def says_the_same(self, other: Stored[T] | None) -> bool:
        """Whether at most the status differs."""
        return (
            other is not None
            and (self.name, self.uid, self.generation) == (other.name, other.uid, other.generation)
            and self.object == other.object
            and self.problem == other.problem
        )


class _Metadata(Struct, rename="camel", gc=False):
    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class _Object(Struct, gc=False):
    metadata: _Metadata
    status: Raw = Raw(b"null")


_OBJECT: Final = msgspec.json.Decoder(_Object)
_STATUS: Final = msgspec.json.Decoder(ObjectStatus | None)


def stored(watched: Watched[T]) -> Watched[Stored[T]]:
    """The same resource, each object with its status.

    An object that cannot be read comes all the same, so that its status can say why; a resource that is not installed
    has no objects.
    """
    return Watched(
        plural=watched.plural,
        singular=watched.singular,
        path=watched.path,
        decode=_decode_of(watched),
        query=watched.query,
        optional=True,
    )


def _decode_of(watched: Watched[T]) -> Callable[[bytes | Raw], tuple[Stored[T], str]]:
    def decode(body: bytes | Raw) -> tuple[Stored[T], str]:
        whole = _OBJECT.decode(body)
        found: T | None = None
        problem = ""
        try:
            found = watched.decoded(body)[0]
        except UndecodableObject as error:
            problem = error.reason
        metadata = whole.metadata
        one = Stored(metadata.name, metadata.uid, metadata.generation, found, problem, _status_of(whole.status))
        return one, metadata.resource_version

    return decode


def _status_of(body: Raw) -> ObjectStatus:
    """A client that may write statuses may write anything: an unreadable one counts as missing."""
    try:
        return _STATUS.decode(body) or ObjectStatus()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ObjectStatus()
