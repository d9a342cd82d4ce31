"""A service that gives out credentials, as those of clouds do. What it answers is the test's."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

Answer = Callable[[str, dict[str, str]], tuple[int, str]]
"""(path with query, fields of the form) -> status, body."""


class TokenService:
    """Context manager. certificate: PEM file with certificate and key; speaks TLS if given."""

    def __init__(self, answer: Answer, *, certificate: Path | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"answer": (answer,)}))
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    answer: tuple[Answer]

    def do_GET(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        status, text = self.answer[0](self.path, {name: values[0] for name, values in parse_qs(sent).items()})
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/xml")
        self.send_header("Metadata-Flavor", "Google")  # by which Google's library knows its metadata server
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET  # noqa: N815 - the name http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Drop the line that the base class writes to standard error for each request."""
