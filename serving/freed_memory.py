"""Memory that is no longer in use goes back to the operating system: at start by limits, later when clients have
gone.
"""

from __future__ import annotations

import asyncio
import ctypes
from functools import cache
from typing import Final

# malloc.h
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_MAPPED_FROM: Final = 2**20
"""Bytes. Below it are the arrays of an answer, which are made anew for every request; above it are tables."""

_ARENAS: Final = 2

_MUCH: Final = 4 * 2**20
_EVERY: Final = 10.0

_TIMES: Final = 4
"""Connections free their buffers when they end, which with TLS may take 30 s more."""


def limit_arenas() -> bool:
    """For the whole process, as early as possible. Returns whether there was anything to be set."""
    library = _glibc()
    if library is None:
        return False
    set_ = ((_M_ARENA_MAX, _ARENAS), (_M_MMAP_THRESHOLD, _MAPPED_FROM), (_M_TRIM_THRESHOLD, _MAPPED_FROM))
    taken = [library.mallopt(name, value) == 1 for name, value in set_]  # the others, too, where one is not taken
    return all(taken)


def give_back() -> None:
    """Return to the system the holes that rare work has left; takes some milliseconds, in which no thread allocates."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """None: another C library."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None


class HeapTrim:
    """Of one event loop, which runs when bytes are noted."""

    def __init__(self) -> None:
        self._bytes, self._left = 0, 0

    def note(self, count: int) -> None:
        """Count bytes that were allocated for a client. After some MB the heap is trimmed, more than once."""
        self._bytes += count
        if self._bytes >= _MUCH:
            self._bytes, waits = 0, self._left > 0
            self._left = _TIMES
            if not waits:
                asyncio.get_running_loop().call_later(_EVERY, self._trim)

    def _trim(self) -> None:
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, give_back)
        self._left -= 1
        if self._left > 0:
            loop.call_later(_EVERY, self._trim)
