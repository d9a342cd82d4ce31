"""What clients made a service allocate goes back to the operating system when they have gone.

Bodies, read buffers and those of TLS are some hundred KiB each. The allocator keeps them (serving/allocator.py).
"""

from __future__ import annotations

import asyncio
from typing import Final

from serving.allocator import give_back

_MUCH: Final = 4 * 2**20
_EVERY: Final = 10.0
_TIMES: Final = 4
"""Connections free their buffers when they end, which with TLS may take 30 s more."""


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
