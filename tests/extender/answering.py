"""A loopback HTTP server that gives one answer to every POST, and counts who connects."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Answering:
    """Context manager. connections, requests: so far; status, body and location may be changed any time."""

    def __init__(self, status: int = 200, body: bytes = b"", *, location: str = "") -> None:
        self.status, self.body, self.location = status, body, location
        self.connections = self.requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body in one packet

        def setup(self) -> None:
            server.connections += 1
            super().setup()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            server.requests += 1
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", str(len(server.body)))
            self.end_headers()
            self.wfile.write(server.body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
