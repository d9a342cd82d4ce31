"""A bounded queue with a thread behind it: who puts something in never waits for the disk or the network."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Outbox(Generic[T]):
    """Hands items to `handle`, in the order they came, some at a time, in a daemon thread.

    A full queue refuses, and counts what it refused.
    """

    def __init__(
        self, name: str, handle: Callable[[Sequence[T]], None], *, max_items: int = 1_000, batch: int = 256
    ) -> None:
        """batch: most items handed over at once. What `handle` raises is logged, its items are gone."""
        self._name, self._handle, self._max_items, self._batch = name, handle, max_items, batch
        self._items: deque[tuple[T, int]] = deque()
        self._weight, self._refused, self._stopping = 0, 0, False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def weight(self) -> int:
        """Of all items that wait."""
        return self._weight

    @property
    def refused(self) -> int:
        """Items for which there was no room."""
        return self._refused

    def start(self) -> None:
        """Begin to hand over; what was put in before is not lost."""
        self._thread.start()

    def put(self, item: T, weight: int = 0) -> bool:
        """Whether there was room. A microsecond or two."""
        with self._changed:
            if len(self._items) >= self._max_items or self._stopping:
                self._refused += 1
                return False
            self._items.append((item, weight))
            self._weight += weight
            self._changed.notify()
        return True

    def stop(self, timeout: float = 2.0) -> None:
        """Take nothing more, hand over what waits, and end; after `timeout` seconds without it."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while items := self._next():
            try:
                self._handle(items)
            except Exception:
                logger.exception("items of a queue were lost", extra={"queue": self._name, "items": len(items)})

    def _next(self) -> list[T]:
        """Wait for items; none = the end."""
        with self._changed:
            while not self._items and not self._stopping:
                self._changed.wait()
            taken = [self._items.popleft() for _ in range(min(len(self._items), self._batch))]
            self._weight -= sum(weight for _, weight in taken)
        return [item for item, _ in taken]
