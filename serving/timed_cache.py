"""Answers that hold for a while: so many at most, those not asked for the longest go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TimedCache(Generic[Key, Value]):
    """For one thread. A value counts for `seconds` from when it was put, however often it is asked for."""

    def __init__(self, *, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._held: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> Value | None:
        """None = not known, or not any more."""
        found = self._held.get(key)
        if found is None:
            return None
        if self._clock() >= found[0]:
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return found[1]

    def put(self, key: Key, value: Value) -> None:
        """Remember it; the one that was used least recently makes room."""
        self._held[key] = (self._clock() + self._seconds, value)
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def forget(self, key: Key) -> None:
        """As if it had never been put."""
        self._held.pop(key, None)
