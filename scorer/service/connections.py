"""Which connections are kept: uvicorn's protocol with limits to how many, how slow and how long a header.

Whoever only connects, asks what everybody may (probes, the page's files) or is hung up on costs nobody else a place:
where there are too many, the one that has been idle for the longest goes, first among those, then among the others.
Who has a request at work is never cut off.
"""

from __future__ import annotations

import asyncio
from itertools import chain

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scorer.service.security import OPEN_PATHS

__all__ = ["limited_protocol"]

_MOST_BESIDE_BODY = 512 * 1024
"""Bytes of header and trailers. Several times what is read at once, which may hold a whole request."""
_FRAMING = 8
"""Bytes that a chunked body of one byte per chunk takes for each, and two more."""


def limited_protocol(header_seconds: float, connections: int) -> type[HttpToolsProtocol]:
    """For one server. uvicorn itself waits for ever for a header, takes one of any size, and answers 503 to everybody,
    probes too, where idle connections are too many."""
    kept = _Kept(connections)

    class Limited(HttpToolsProtocol):
        _patience: asyncio.TimerHandle | None = None
        _received = _body = 0  # bytes of the request
        _stranger = True

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._received += len(data)
            # The parser keeps headers and trailers whole, however long; bodies are limits.py's matter.
            if self._received > _MOST_BESIDE_BODY + _FRAMING * self._body:
                self.transport.close()

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            super().on_body(body)

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._patience = self.loop.call_later(header_seconds, transport.close)
            kept.add(self)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._received = self._body = 0
            if self._patience is None:
                self._patience = self.loop.call_later(header_seconds, self.transport.close)

        def on_headers_complete(self) -> None:
            self._calm()
            kept.at_work(self)
            super().on_headers_complete()
            self._stranger = self._stranger and self.scope["path"] in OPEN_PATHS

        def on_response_complete(self) -> None:
            more = bool(self.pipeline)
            super().on_response_complete()
            if not more:
                # A TLS connection that we close waits for the other side to agree: a stranger's matter.
                kept.idle(self, stranger=self._stranger or self.transport.is_closing())

        def connection_lost(self, exc: Exception | None) -> None:
            self._calm()
            kept.discard(self)
            super().connection_lost(exc)

        def _calm(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

    return Limited


class _Kept:
    """The connections of a server. Those that are idle in the order in which they became so."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: set[HttpToolsProtocol] = set()
        self._strangers: dict[HttpToolsProtocol, None] = {}
        self._known: dict[HttpToolsProtocol, None] = {}

    def add(self, new: HttpToolsProtocol) -> None:
        """One that has asked nothing yet; another makes room for it, if one is idle."""
        self._all.add(new)
        self._strangers[new] = None
        if len(self._all) > self._most:
            longest = next((found for found in chain(self._strangers, self._known) if found is not new), new)
            self.discard(longest)
            # Not close(): with TLS it would wait for the other side to agree.
            longest.transport.abort()

    def at_work(self, one: HttpToolsProtocol) -> None:
        """It has sent a request's header."""
        self._strangers.pop(one, None)
        self._known.pop(one, None)

    def idle(self, one: HttpToolsProtocol, *, stranger: bool) -> None:
        """It has its answers."""
        if one in self._all:
            (self._strangers if stranger else self._known)[one] = None

    def discard(self, one: HttpToolsProtocol) -> None:
        """It is closed."""
        self._all.discard(one)
        self.at_work(one)
