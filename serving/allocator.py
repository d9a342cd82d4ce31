"""Memory that is no longer in use goes back to the operating system: services keep running, and say what they have.

glibc keeps what is freed for later. It has an arena for every thread that allocates, eight for each core, none of which
gives its holes away; and it raises the size from which a block is mapped by itself (and so returned when it is freed)
to the largest one ever freed, 32 MiB at most (mallopt(3), M_ARENA_MAX and M_MMAP_THRESHOLD). Reading a cluster and
replacing a model, done by several threads with arrays of some MB, then leave as much behind as the tables themselves
take. Elsewhere than on glibc nothing is changed.
"""

from __future__ import annotations

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
