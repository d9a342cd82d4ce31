"""How many bytes of request bodies a process holds at once, and how many of one peer.

A limit per request alone bounds nothing: a client may open many, and stop each just before its end.

    reading --whole--> in line --its turn--> at work --answered--> released
       |                  |
       +------------------+--another body needs the room--> dropped, answered 503

Small bodies are at work at once, as far as `max_concurrent` allows. Of large ones one is at work at a time: what a
decoder makes of a body takes several times its bytes. Peers take turns in the line, each with its oldest body.

If the room is used up, the peer that holds the most bytes gives way, by its largest body that is not at work. If the
requests are too many, the peer with the most bodies that are not at work gives way, by the oldest of them.
So clients that hold much cannot keep out clients that hold little. Everything here runs on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from serving.threads import in_thread

BODIES_IN_ALL: Final = 8
"""The room, as a multiple of the largest body that is allowed."""
BODIES_OF_A_PEER: Final = 4
FREE_BYTES: Final = 64 * 1024
"""Of each body, outside the room: `max_concurrent` bounds how many there are. Ordinary requests need no more."""
LARGE_BODY: Final = 256 * 1024
"""Bytes. More is large, and worked on outside the event loop."""
LARGE_VALUES: Final = 1000
"""JSON values. More are large, too: a container without fields is 3 bytes, and takes 25 microseconds."""

BYTES_OF_A_VALUE: Final = 32
"""At least, on average, in a large body: names of nodes are longer. Decoders make some hundred bytes of each value."""

Answer = TypeVar("Answer")


class Dropped(Exception):
    """The body gave way to others."""


class _State(Enum):
    READING = auto()
    IN_LINE = auto()
    AT_WORK = auto()
    RELEASED = auto()


@dataclass(slots=True, eq=False)
class HeldBody:
    """One body. size: bytes so far; give_up: ends the wait of the one who reads it, once it is dropped."""

    peer: str
    give_up: Callable[[], None]
    size: int = 0
    dropped: bool = False
    state: _State = _State.READING
    large: bool = False

    @property
    def at_work(self) -> bool:
        """It has passed the line."""
        return self.state is _State.AT_WORK

    @property
    def counted(self) -> int:
        """Bytes that need room."""
        return max(0, self.size - FREE_BYTES)


class BodyBudget:
    """The room of one process for bodies of at most `max_body_bytes`."""

    def __init__(self, max_body_bytes: int) -> None:
        self._most, self._most_of_a_peer = BODIES_IN_ALL * max_body_bytes, BODIES_OF_A_PEER * max_body_bytes
        self._held: dict[HeldBody, None] = {}  # the oldest first
        self._by_peer: Counter[str] = Counter()
        self._total = 0
        self._line: dict[str, deque[asyncio.Future[None]]] = {}  # of each peer; the one whose turn it is first
        self._large_at_work = False

    @property
    def held_bytes(self) -> int:
        """Return the bytes that are held, without the first FREE_BYTES of each body."""
        return self._total

    def open(self, peer: str, give_up: Callable[[], None]) -> HeldBody:
        """A body that is about to arrive. Release it in the end, whatever happens."""
        held = HeldBody(peer, give_up)
        self._held[held] = None
        return held

    @property
    def leaving(self) -> int:
        """Bodies that gave way and are not released yet."""
        return sum(one.dropped for one in self._held)

    def make_place(self) -> bool:
        """Drop a body that is not at work in favour of another request. False: all are at work."""
        waiting = [one for one in self._held if not (one.at_work or one.dropped)]
        if not waiting:
            return False
        peer = Counter(one.peer for one in waiting).most_common(1)[0][0]
        self._give_up(next(one for one in waiting if one.peer == peer))
        return True

    def grow(self, held: HeldBody, count: int) -> None:
        """`count` more bytes have come. Raises Dropped where `held` has to give way."""
        if held.dropped:
            raise Dropped
        before = held.counted
        held.size += count
        self._count(held, held.counted - before)
        while self._by_peer[held.peer] > self._most_of_a_peer:
            self._drop(held.peer, held)
        while self._total > self._most:
            self._drop(self._by_peer.most_common(1)[0][0], held)
        if held.dropped:
            raise Dropped

    async def turn(self, held: HeldBody, *, large: bool) -> None:
        """The body is whole; waits until it may be worked on. Raises Dropped."""
        if large:
            if self._large_at_work:
                await self._in_line(held)
            self._large_at_work = held.large = True
        held.state = _State.AT_WORK

    def release(self, held: HeldBody) -> None:
        """Nothing of it is needed any more. The second time does nothing."""
        if held.state is _State.RELEASED:
            return
        if held.large:
            held.large = False
            self._next()
        self._held.pop(held, None)
        if not held.dropped:
            self._count(held, -held.counted)
        held.state = _State.RELEASED

    async def _in_line(self, held: HeldBody) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        held.state = _State.IN_LINE
        self._line.setdefault(held.peer, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            held.large = turn.done() and not turn.cancelled()  # its turn came as it left: release() passes it on
            raise
        if held.dropped:
            held.large = True
            raise Dropped

    def _next(self) -> None:
        while self._line:
            peer = next(iter(self._line))
            turns = self._line.pop(peer)
            turn = turns.popleft()
            if turns:
                self._line[peer] = turns  # behind the other peers
            if not turn.done():
                turn.set_result(None)
                return
        self._large_at_work = False

    def _drop(self, peer: str, growing: HeldBody) -> None:
        """One of this peer's that is not at work, else the one that grows. Raises Dropped where it is that one."""
        waiting = [one for one in self._held if one.peer == peer and one.counted and not (one.at_work or one.dropped)]
        given_up = max(waiting, key=lambda one: one.counted, default=growing)
        if given_up is growing:
            self._count(growing, -growing.counted)
            growing.dropped = True
            raise Dropped
        self._give_up(given_up)

    def _give_up(self, held: HeldBody) -> None:
        self._count(held, -held.counted)
        held.dropped = True
        held.give_up()

    def _count(self, held: HeldBody, count: int) -> None:
        self._total += count
        self._by_peer[held.peer] += count
        if not self._by_peer[held.peer]:
            del self._by_peer[held.peer]


def json_values(body: bytes) -> int:
    """Return a number of values that the JSON has at least, plus one. Commas in its strings count, too, which names do
    not have.
    """
    return sum(body.count(mark) for mark in (b",", b"[", b"{"))


def is_large(body: bytes) -> bool:
    """Whether working on it would keep the event loop from others for more than some milliseconds."""
    return len(body) > LARGE_BODY or json_values(body) > LARGE_VALUES


async def off_loop(body: bytes, work: Callable[[], Answer]) -> Answer:
    """Return what `work` makes of the body: outside the event loop if it is large.

    Handing work to a thread costs as much as a small body, and cancelling does not end it: the body stays counted.
    """
    if not is_large(body):
        return work()
    return await in_thread(work)
