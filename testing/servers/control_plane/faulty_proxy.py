"""An HTTPS proxy on loopback in front of an API server that fails requests as a test asks it to."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Fault = str | int
"""A status of the answer; "late": by `late_seconds`; "lost": the server does it, and the answer is lost; "cut": it
never gets there. '' = none."""


class FaultyProxy:
    """Context manager in front of 127.0.0.1:`port`, with the server's own certificate: the address is the same.

    fault : of a request, by method and path; may be replaced at any time. Watches are passed on as they are
    done  : requests by method and fault, '' without one
    """

    def __init__(self, port: int, certificate: Path, *, late_seconds: float = 6.0) -> None:
        self.fault: Callable[[str, str], Fault] = lambda method, path: ""
        self.done: Counter[tuple[str, Fault]] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, port, certificate, late_seconds))
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self.ends = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ends.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(proxy: FaultyProxy, port: int, certificate: Path, late_seconds: float) -> type[BaseHTTPRequestHandler]:
    upstream_tls = ssl.create_default_context(cafile=str(certificate))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 300

        def _pass(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            is_watch = "watch=" in self.path
            fault = "" if is_watch else proxy.fault(self.command, self.path)
            proxy.done[self.command, fault] += 1
            if isinstance(fault, int):
                self._say(fault, json.dumps(_status(fault)).encode(), "application/json")
                return
            if fault == "cut":
                self.close_connection = True
                return
            if fault == "late":
                time.sleep(late_seconds)
            upstream = http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=300 if is_watch else 30, context=upstream_tls
            )
            try:
                headers = {key: value for key, value in self.headers.items() if key.lower() not in _OF_THE_HOP}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                if is_watch and answer.status == 200:
                    self._stream(answer)
                    return
                said = answer.read()
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                return
            finally:
                upstream.close()
            if fault == "lost":
                self.close_connection = True
                return
            self._say(answer.status, said, answer.headers["Content-Type"] or "application/json")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815 - names http.server looks for

        def _say(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, answer: http.client.HTTPResponse) -> None:
            self.send_response(200)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            while not proxy.ends.is_set() and (piece := answer.read1(1 << 16)):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


_OF_THE_HOP = frozenset({"connection", "host", "content-length", "transfer-encoding", "accept-encoding"})


def _status(code: int) -> dict[str, Any]:
    reasons = {429: "TooManyRequests", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}
    message = (
        "Cannot evict pod as it would violate the pod's disruption budget." if code == 429 else "made up by a test"
    )
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    return status | {"reason": reasons.get(code, ""), "code": code}
