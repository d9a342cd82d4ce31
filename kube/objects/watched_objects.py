"""Objects of one kind as a watch keeps them: by namespace and name, and which of two resourceVersions is the older."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

_LONGEST: Final = 39
"""Digits: those of 128 bits. Python refuses to read numbers of thousands of digits."""


class _Named(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


class NamedObjects(Generic[T]):
    """Implements ResourceSink. For any thread.

    listeners : are handed what is new or has changed, on the thread that watches and under no lock; all of it when
                everything was listed anew
    """

    def __init__(self, *, listeners: Iterable[Callable[[Sequence[T]], None]] = ()) -> None:
        self._listeners = tuple(listeners)
        self._lock = threading.Lock()
        self._objects: dict[tuple[str, str], T] = {}
        self._version = 0

    def replace(self, objects: Sequence[T]) -> None:
        made = {(one.namespace, one.name): one for one in objects}
        with self._lock:
            self._objects = made
            self._version += 1
        self._tell(tuple(made.values()))

    def put(self, obj: T) -> None:
        """One is new or has changed."""
        with self._lock:
            self._objects[obj.namespace, obj.name] = obj
            self._version += 1
        self._tell((obj,))

    def delete(self, obj: T) -> None:
        with self._lock:
            self._objects.pop((obj.namespace, obj.name), None)
            self._version += 1

    @property
    def version(self) -> int:
        """Another number whenever something has changed."""
        return self._version

    def get(self, namespace: str, name: str) -> T | None:
        """One of them; None = there is no such object."""
        with self._lock:
            return self._objects.get((namespace, name))

    def all(self) -> tuple[T, ...]:
        """As they are now, in no particular order."""
        with self._lock:
            return tuple(self._objects.values())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._objects)

    def _tell(self, objects: Sequence[T]) -> None:
        for listener in self._listeners:
            listener(objects)


def version_number(version: str | None) -> int | None:
    """Return the number; None = it is none."""
    is_one = version and len(version) <= _LONGEST and version.isascii() and version.isdigit()
    return int(version) if version and is_one else None


def is_older(one: str, other: str) -> bool:
    """Return whether the first of two versions is the older; what is no number says nothing."""
    numbers = version_number(one), version_number(other)
    return numbers[0] is not None and numbers[1] is not None and numbers[0] < numbers[1]
