"""Pods whose annotation names no policy: each is counted and told once, however often it is asked about."""

from __future__ import annotations

import threading
from typing import Final

_MOST_REMEMBERED: Final = 10_000


class UnknownNames:
    """Remembers the latest pods, by UID and name; for any thread."""

    def __init__(self, most: int = _MOST_REMEMBERED) -> None:
        self._most, self._seen = most, dict[tuple[str, int], None]()
        self._lock, self._total = threading.Lock(), 0

    def note(self, uid: str, name: str) -> bool:
        """Whether this is new."""
        key = uid, hash(name)  # an annotation may be 256 KiB long
        if key in self._seen:
            return False
        with self._lock:
            if key in self._seen:
                return False
            if len(self._seen) >= self._most:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = None
            self._total += 1
        return True

    @property
    def total(self) -> int:
        """Pods so far."""
        return self._total
