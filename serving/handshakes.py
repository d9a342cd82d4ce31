"""Accepts connections with TLS, and bounds how many of them have not agreed on it yet.

Such a connection takes memory, and connections.py does not know it: it only sees those that are secured.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serving.heap_trim import HeapTrim
from serving.quiet_log import QuietLog

logger = logging.getLogger(__name__)

MOST_HANDSHAKES: Final = 300
"""At once. Past it, the one that has lasted for the longest is hung up on; one takes some milliseconds."""
_OF_ONE: Final = 56 * 1024
"""Bytes that it takes."""
_AT_ONCE: Final = 50
"""Connections accepted before others are served on."""
_PAUSE_SECONDS: Final = 1.0


class TlsListener:
    """Serves until it is closed, as asyncio.Server does. seconds: a handshake has to end by then."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], HttpToolsProtocol],
        context: ssl.SSLContext,
        seconds: float,
    ) -> None:
        self._listener, self._protocol, self._context, self._seconds = listener, protocol, context, seconds
        self._loop = asyncio.get_running_loop()
        self._agreeing: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._log, self._heap = QuietLog(logger), HeapTrim()
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept no further connections. Secured ones stay."""
        self._loop.remove_reader(self._listener)
        for task in self._agreeing:
            task.cancel()

    async def wait_closed(self) -> None:
        """No handshake is under way any more."""
        await asyncio.gather(*self._agreeing, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptors are left
                self._log.log(logging.ERROR, "cannot accept connections: %s", error.strerror)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_SECONDS, self._accept_again)
                return
            connection.setblocking(False)
            self._heap.note(_OF_ONE)
            task = self._loop.create_task(self._agree(connection))
            self._agreeing[task] = None
            task.add_done_callback(lambda done: self._agreeing.pop(done, None))
            if len(self._agreeing) > MOST_HANDSHAKES:
                oldest = next(iter(self._agreeing))
                self._agreeing.pop(oldest)
                oldest.cancel()

    def _accept_again(self) -> None:
        if self._listener.fileno() >= 0:  # it is still open
            self._loop.add_reader(self._listener, self._accept)

    async def _agree(self, connection: socket.socket) -> None:
        protocol, agreed = self._protocol(), False
        try:
            with suppress(OSError):  # the event loop has logged it
                await self._loop.connect_accepted_socket(
                    lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=self._seconds
                )
                agreed = True
        finally:
            if not agreed:
                protocol.parser = None  # type: ignore[assignment]  # each of them keeps the other
