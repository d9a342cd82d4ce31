"""Reads answers of servers piece by piece, so that no server decides how much memory a process takes.

An answer is bounded in bytes, as decompressed, and in seconds. All answers that are read at the same time share a room:
an answer waits while the others hold it, except the one that has needed room for longest, which always goes on. So the
process holds at most the room and one more answer, and never stands still.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from base.errors import ForecastError

PIECE_BYTES: Final = 2**20
_FREE_BYTES: Final = 2**20
"""Of each answer, outside the room: ordinary answers never wait."""


class AnswerTooLarge(ForecastError):
    """The answer has more bytes than are read."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"the answer is larger than {most:,} bytes, the most that is read of one")


class AnswerTooSlow(ForecastError, TimeoutError):
    """The answer did not end in time, or there was no room for it in time."""


class ReadingRoom:
    """Bytes that the answers of a process may take together. For any thread."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._held: dict[int, int] = {}  # bytes by reader, the one that needed room first at the head
        self._next = 0

    @property
    def held_bytes(self) -> int:
        """Return the bytes that are held now."""
        with self._changed:
            return sum(self._held.values())

    @contextmanager
    def reading(self) -> Iterator[Callable[[int, float], None]]:
        """Yield what a reader calls with the bytes it holds by now, and the seconds it is ready to wait for room.

        The room is given back at the end of the block: what is made of the answer is made inside. A reader that waited
        in vain gets AnswerTooSlow.
        """
        with self._changed:
            self._next += 1
            number = self._next

        def hold(count: int, seconds: float) -> None:
            if count <= _FREE_BYTES:
                return
            with self._changed:
                more = count - _FREE_BYTES - self._held.setdefault(number, 0)
                if not self._changed.wait_for(lambda: self._may_hold(number, more), seconds):
                    raise AnswerTooSlow(f"found no room beside other answers for {seconds:g} s")
                self._held[number] += more

        try:
            yield hold
        finally:
            with self._changed:
                self._held.pop(number, None)
                self._changed.notify_all()

    def _may_hold(self, number: int, more: int) -> bool:
        return next(iter(self._held)) == number or sum(self._held.values()) + more <= self.most


ROOM: Final = ReadingRoom(2**27)
"""Shared by all answers that this process reads at once."""


def read_whole(
    read: Callable[[int], bytes],
    hold: Callable[[int, float], None],
    *,
    most: int,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> bytearray:
    """The answer, decompressed. Raises AnswerTooLarge, AnswerTooSlow and what `read` raises.

    read    : returns at most so many bytes of it, as soon as there are any; none at its end
    hold    : see Room.reading
    most    : bytes
    seconds : in all, the waiting for room not counted, which may take as long again
    """
    body, left = bytearray(), seconds
    while True:
        begun = clock()
        piece = read(PIECE_BYTES)
        left -= clock() - begun
        if not piece:
            return body
        if len(body) + len(piece) > most:
            raise AnswerTooLarge(most)
        if left < 0:
            raise AnswerTooSlow(f"did not end its answer within {seconds:g} s")
        hold(len(body) + len(piece), seconds)
        body += piece
