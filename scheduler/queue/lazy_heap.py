"""A heap that things can be taken out of in the middle, by their key, in O(log n)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_FEW: Final = 64


class LazyHeap(Generic[T]):
    """Things in the order of their keys. A key can be hashed and compared, and is that of one thing at a time.

    The key of a thing that is taken out stays in the heap until it comes to the top, or until such keys are more than
    the others: memory stays in proportion to what is in it. The heap holds keys only: numbers, and tuples of numbers,
    cost the garbage collector nothing.
    """

    __slots__ = ("_heap", "_things")

    def __init__(self) -> None:
        self._heap: list[Any] = []
        self._things: dict[Any, T] = {}

    def push(self, key: Any, thing: T) -> None:
        self._things[key] = thing
        heapq.heappush(self._heap, key)
        if len(self._heap) > 2 * len(self._things) + _FEW:
            self._bury()

    def discard(self, key: Any) -> None:
        """Take out, if it is there."""
        if self._things.pop(key, None) is not None and len(self._heap) > 2 * len(self._things) + _FEW:
            self._bury()

    def first(self) -> tuple[Any, T] | None:
        """Lowest key and whose it is."""
        heap, things = self._heap, self._things
        while heap:
            key = heap[0]
            if key in things:
                return key, things[key]
            heapq.heappop(heap)
        return None

    def smallest(self, most: int) -> list[T]:
        """Return the first `most`, in order; they stay. It looks at all."""
        return [self._things[key] for key in heapq.nsmallest(most, self._things)]

    def pop(self, most: int) -> list[T]:
        """Take out the first `most`, in order."""
        heap, things = self._heap, self._things
        popped: list[T] = []
        while heap and len(popped) < most:
            thing = things.pop(heapq.heappop(heap), None)
            if thing is not None:
                popped.append(thing)
        return popped

    def __len__(self) -> int:
        return len(self._things)

    def __contains__(self, key: Any) -> bool:
        return key in self._things

    def __iter__(self) -> Iterator[T]:
        return iter(self._things.values())

    def _bury(self) -> None:
        self._heap = sorted(self._things)
