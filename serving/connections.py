"""Which connections are kept: uvicorn's protocol with limits to how many, how slow, how long a header, and how many
requests ahead of the answers.

A client that only connects, that asks what every client may (probes, the page's files), or that was hung up on costs no
other client a place. If there are too many connections, the one idle for longest is closed, first among those, then
among the others. A connection with a request at work is never cut off, unless the client does not read its answers:
then it counts as idle.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Mapping, Sized
from functools import partial
from itertools import chain
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from serving.freed_memory import HeapTrim
from serving.quiet_log import QuietLog
from serving.security import OPEN_PATHS

logger = logging.getLogger(__name__)

MOST_BESIDE_BODY = 48 * 1024
"""Bytes of headers and trailers that are kept for a client, each header with its objects, and of what frames chunks.
Servers and proxies commonly take 8 to 64 KiB."""
_OF_A_HEADER = 100
"""Bytes of the objects that hold one, without its text."""
_OF_FRAMES = 8
"""Least ratio of a body's bytes to those that frame its chunks. Parsing one byte costs as much as parsing a hundred,
and no other client is served meanwhile.
"""
_BUFFERS = 64 * 1024
"""Bytes that a connection takes before it says anything; and of its answers, or read ahead with TLS, that may wait."""
_MOST_WAITING = 8
"""Requests of a client that wait for the answer to the one before. Most clients never send one ahead; what is read at
once (256 KiB) may hold thousands, and no other client is served while they are parsed.
"""
MOST_UNREAD = 64 * 1024 * 1024
"""Bytes of answers that all clients together have not read yet: one of /metrics at 5,000 nodes, unzipped, and more. An
answer is written whole: its request is over, and no longer among those that limits.py counts, while it waits here."""


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """Of a certificate as ssl.SSLSocket.getpeercert gives it; None = it has none, or none was shown."""
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return None


def limited_protocol(
    header_seconds: float, unread_seconds: float, connections: int, client_names: Collection[str] = ()
) -> type[HttpToolsProtocol]:
    """For one server. uvicorn itself waits for ever for a header and for answers to be read, takes headers of any size
    and requests in any number, and answers 503 to every client, probes too, if idle connections are too many.

    client_names : a client must show a certificate with one of these common names; none = any
    """
    kept, quiet, heap = _Kept(connections), QuietLog(logger), HeapTrim()

    class Limited(HttpToolsProtocol):
        _patience: asyncio.TimerHandle | None = None  # until a header is whole
        _unread: asyncio.TimerHandle | None = None  # until answers are read on
        _received = _headers = _body = 0  # bytes since the last answer
        _stranger = True
        _unanswered: deque[RequestResponseCycle]  # the one at work first
        _ended = _refused = False

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            super().data_received(data)
            self._received += len(data)
            heap.note(len(data))
            # The parser keeps headers and trailers whole, however long; bodies are limits.py's matter.
            if self._received > MOST_BESIDE_BODY + self._body + self._body // _OF_FRAMES:
                self.transport.abort()

        def on_header(self, name: bytes, value: bytes) -> None:
            self._headers += _OF_A_HEADER + len(name) + len(value)
            if self._headers > MOST_BESIDE_BODY:
                self.transport.abort()
                raise _TooMuch  # ends the parser's work
            super().on_header(name, value)

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            super().on_body(body)

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if client_names and common_name(transport.get_extra_info("peercert")) not in client_names:
                quiet.log(logging.WARNING, "a client was refused: client_names has not the name of its certificate")
                self._refused = True
                transport.abort()
            self.flow = _OneByOne(transport, self.pipeline)
            self._unanswered = deque()
            transport.set_write_buffer_limits(_BUFFERS)  # with TLS, it would be 512 KiB, and 256 to read
            if hasattr(transport, "set_read_buffer_limits"):
                transport.set_read_buffer_limits(_BUFFERS)
            self._patience = self.loop.call_later(header_seconds, transport.close)
            kept.add(self)
            heap.note(_BUFFERS)

        def on_message_begin(self) -> None:
            if len(self.pipeline) >= _MOST_WAITING:
                self.transport.abort()
                raise _TooMuch  # ends the parser's work
            super().on_message_begin()
            if self._patience is None:
                self._patience = self.loop.call_later(header_seconds, self.transport.close)

        def on_headers_complete(self) -> None:
            self._calm()
            kept.at_work(self)
            app = self.app
            self.app = partial(self._once_read, app)  # of this request
            super().on_headers_complete()
            self.app = app  # else the connection would keep itself
            self._unanswered.append(self.cycle)

        async def _once_read(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
            # Its answer would wait for the client and keep a place among the requests at work (limits.py).
            if self.flow.write_paused:
                self.flow.pause_reading()
                self._idle()
                await self.flow.drain()
                kept.at_work(self)
                self.flow.resume_reading()
            if not self._ended:
                await app(scope, receive, send)

        def on_response_complete(self) -> None:
            more = bool(self.pipeline)
            self._unanswered.popleft().body = bytearray()  # the rest is not read
            self._received = self._headers = self._body = 0
            super().on_response_complete()
            if not more:
                self._stranger = self._stranger and self.cycle.scope["path"] in OPEN_PATHS
                self._idle()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._idle()
            self._await_reading()
            kept.unread(self)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._read_on()

        def _idle(self) -> None:
            # A TLS connection that we close waits for the other side to agree: a stranger's matter.
            kept.idle(self, stranger=self._stranger or self.transport.is_closing())

        def _await_reading(self) -> None:
            unread = self.transport.get_write_buffer_size()
            self._unread = self.loop.call_later(unread_seconds, self._hang_up_unless_fewer, unread)

        def _hang_up_unless_fewer(self, unread: int) -> None:
            if self.transport.get_write_buffer_size() >= unread:
                self.transport.abort()  # close() would wait for the rest to be read
            else:
                self._await_reading()

        def connection_lost(self, exc: Exception | None) -> None:
            self._ended = True
            self._calm()
            self._read_on()
            kept.discard(self)
            self._end_unanswered()
            super().connection_lost(exc)
            if self.timeout_keep_alive_task is not None:  # uvicorn leaves it where the client has reset the connection
                self.timeout_keep_alive_task.cancel()

        def _end_unanswered(self) -> None:
            # uvicorn's own lets only the last request know. The others would write to a transport that is closed.
            if self._unanswered:
                quiet.log(logging.INFO, "a client was gone before its answer")
            self.pipeline.clear()
            for cycle in self._unanswered:
                cycle.disconnected = True
                cycle.message_event.set()
            # Else they and the connection, with buffers of TLS, keep each other until the garbage collector comes by.
            for cycle in (*self._unanswered, *filter(None, [self.cycle])):
                cycle.on_response = _nothing
            self._unanswered.clear()

        def _calm(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _read_on(self) -> None:
            kept.read(self)
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

    return Limited


def _nothing() -> None:
    """Replace `on_response` of a request whose connection is gone."""


class _TooMuch(Exception):
    """A client has sent more headers, or more requests ahead, than it may."""


class _OneByOne(FlowControl):
    """Nothing is read while a request waits for the answer to the one before.

    uvicorn's own reads on whenever the body of one is asked for. For each answer to a client that sends faster than it
    is answered, it thus parses and keeps thousands of requests more, and hardly serves any other client.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class _Kept:
    """The connections of a server. Those that are idle in the order in which they became so."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: set[HttpToolsProtocol] = set()
        self._strangers: dict[HttpToolsProtocol, None] = {}
        self._known: dict[HttpToolsProtocol, None] = {}
        self._unread: dict[HttpToolsProtocol, None] = {}  # in the order in which they stopped to read

    def add(self, new: HttpToolsProtocol) -> None:
        """One that has asked nothing yet; another makes room for it, if one is idle."""
        self._all.add(new)
        self._strangers[new] = None
        if len(self._all) > self._most:
            self._hang_up(next((found for found in chain(self._strangers, self._known) if found is not new), new))

    def at_work(self, one: HttpToolsProtocol) -> None:
        """It has sent a request's header."""
        self._strangers.pop(one, None)
        self._known.pop(one, None)

    def idle(self, one: HttpToolsProtocol, *, stranger: bool) -> None:
        """It has its answers, or does not read them."""
        if one in self._all:
            self.at_work(one)  # out of its old place
            (self._strangers if stranger else self._known)[one] = None

    def unread(self, new: HttpToolsProtocol) -> None:
        """Its answers wait to be read. Where all that wait are too many, those that have waited for the longest go."""
        self._unread[new] = None
        while len(self._unread) > 1 and self._bytes_unread() > MOST_UNREAD:
            self._hang_up(next(iter(self._unread)))

    def read(self, one: HttpToolsProtocol) -> None:
        self._unread.pop(one, None)

    def discard(self, one: HttpToolsProtocol) -> None:
        self._all.discard(one)
        self.at_work(one)
        self.read(one)

    def _bytes_unread(self) -> int:
        return sum(one.transport.get_write_buffer_size() for one in self._unread)

    def _hang_up(self, one: HttpToolsProtocol) -> None:
        self.discard(one)
        one.transport.abort()  # close() would wait for the rest to be read, or with TLS for the other side to agree
