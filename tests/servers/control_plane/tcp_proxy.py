"""A TCP proxy on loopback whose connections a test can reset, refuse or freeze."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

__all__ = ["TcpProxy"]

# Closing with a linger time of 0 sends a reset instead of an orderly end.
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Context manager in front of 127.0.0.1:`port`. The server's certificate stays valid: the address is the same.

    accepted : connections so far
    lost     : answers lost on purpose so far
    """

    def __init__(self, port: int) -> None:
        self._upstream = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        self.lost = 0
        self._refusing, self._to_lose = False, 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
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
            pairs, self._pairs = self._pairs, []
            talking, self._talking, self._frozen = self._talking, set(), set()
        for pair in pairs:
            for end in pair:
                # A reset before the first byte makes Python's ssl.SSLSocket._create leave a socket to the garbage
                # collector, which our tests take for a leak of ours: such connections end in good order.
                with suppress(OSError):
                    if pair[0] in talking:
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
            self._frozen |= {end for pair in self._pairs for end in pair}

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
            with self._lock:  # either refuse() cuts this one, or it is seen here
                refused = self._refusing
                if not refused:
                    self._pairs.append((client, server))
            if refused:
                client.close()
                server.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target, server), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, server: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                self._talking.add(source)
                if source is server and self._to_lose > 0:
                    self._to_lose, self.lost = self._to_lose - 1, self.lost + 1
                    self.cut()
                    return
                if source not in self._frozen:
                    target.sendall(piece)
        except OSError:
            pass  # a reset on one side ends the other below
        if source not in self._frozen:
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)
