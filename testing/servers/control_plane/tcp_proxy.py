"""A TCP proxy, mostly on loopback, whose connections a test can reset, refuse, freeze or delay."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Self, TypeAlias

# Closing with a linger time of 0 sends a reset instead of an orderly end.
_RESET = struct.pack("ii", 1, 0)

_Pieces: TypeAlias = SimpleQueue[tuple[float, bytes]]
"""Of what the server says, with when each is due."""


@dataclass(eq=False, slots=True)
class _Connection:
    """is_cut: nothing that is still on its way is to arrive."""

    client: socket.socket
    server: socket.socket
    lag_seconds: float
    is_cut: threading.Event = field(default_factory=threading.Event)


class TcpProxy:
    """Context manager in front of 127.0.0.1:`port`. The server's certificate stays valid: the address is the same.

    address     : to listen on
    lag_seconds : all that the server says arrives so much later, also the end; as much at once as without a lag
    accepted    : connections so far
    lost        : answers lost on purpose so far
    """

    def __init__(self, port: int, *, lag_seconds: float = 0.0, address: str = "127.0.0.1") -> None:
        self._lag = lag_seconds
        self._upstream = ("127.0.0.1", port)
        self._listener = socket.create_server((address, 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"https://{address}:{self.port}"
        self.accepted = 0
        self.lost = 0
        self._refusing, self._to_lose = False, 0
        self._connections: list[_Connection] = []
        self._frozen: set[socket.socket] = set()
        self._talking: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
        self._accepting.join()  # the connection it was just making is among those to cut
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Reset all connections now, wherever in a message they are."""
        with self._lock:
            connections, self._connections = self._connections, []
            talking, self._talking, self._frozen = self._talking, set(), set()
        for connection in connections:
            connection.is_cut.set()
            for end in (connection.client, connection.server):
                # A reset before the first byte makes Python's ssl.SSLSocket._create leave a socket to the garbage
                # collector, which our tests take for a leak of ours: such connections end in good order.
                with suppress(OSError):
                    if connection.client in talking:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RD)  # wakes the thread in recv(), sends nothing
                end.close()

    def refuse(self, refusing: bool) -> None:
        """Cut all connections and end new ones at once, until refuse(False)."""
        self._refusing = refusing
        if refusing:
            self.cut()

    def lose_answers(self, count: int) -> None:
        """The next times that the server says something its words are lost and all connections reset.

        For connections that are open: on a new one the handshake would be lost, before any request was sent.
        """
        self._to_lose = count

    def freeze(self) -> None:
        """From now on today's connections carry nothing and do not end, as after a router forgot them."""
        with self._lock:
            self._frozen |= {end for one in self._connections for end in (one.client, one.server)}

    def lag_open_connections(self, seconds: float) -> None:
        """From now on today's connections lag by so much: watches do, and requests on new connections do not.

        For a proxy that was made with a lag, if ever so short.
        """
        with self._lock:
            for one in self._connections:
                one.lag_seconds = seconds

    def lag_new_connections(self, seconds: float) -> None:
        """Connections from now on lag by so much: requests do, and watches that are open do not."""
        self._lag = seconds

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                server = socket.create_connection(self._upstream, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):  # what comes in two pieces goes on in two, at once: the only lag is ours
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:  # either refuse() cuts this one, or it is seen here
                refused = self._refusing
                if not refused:
                    connection = _Connection(client, server, self._lag)
                    self._connections.append(connection)
            if refused:
                client.close()
                server.close()
                continue
            to_server, to_client = partial(self._say, client, server), partial(self._say, server, client)
            if self._lag > 0:
                later: _Pieces = SimpleQueue()
                self._run(self._deliver, later, to_client, connection)
                to_client = partial(self._put_off, connection, later)
            self._run(self._pump, client, to_server, False)
            self._run(self._pump, server, to_client, True)

    def _run(self, target: Callable[..., None], *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _pump(self, source: socket.socket, say: Callable[[bytes], None], is_server: bool) -> None:
        """What `source` says piece by piece, then b"" for its end."""
        with suppress(OSError):  # a reset on one side ends the other below
            while piece := source.recv(1 << 16):
                self._talking.add(source)
                if is_server and self._to_lose > 0:
                    self._to_lose, self.lost = self._to_lose - 1, self.lost + 1
                    self.cut()
                    break
                say(piece)
        with suppress(OSError):
            say(b"")

    def _say(self, source: socket.socket, target: socket.socket, piece: bytes) -> None:
        if source in self._frozen:
            return
        if piece:
            target.sendall(piece)
        else:
            target.shutdown(socket.SHUT_WR)

    def _put_off(self, connection: _Connection, later: _Pieces, piece: bytes) -> None:
        later.put((time.monotonic() + connection.lag_seconds, piece))

    def _deliver(self, later: _Pieces, say: Callable[[bytes], None], connection: _Connection) -> None:
        """Until the end, which also follows a cut."""
        with suppress(OSError):
            while True:
                due, piece = later.get()
                if connection.is_cut.wait(max(0.0, due - time.monotonic())):
                    return
                say(piece)
                if not piece:
                    return
