"""An HTTP server that answers lists and watches from a script: what a real API server does too rarely to wait for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    """status, body in chunks, headers; `hold` seconds until the stream ends, `broken` = without its last chunk."""

    status: int = 200
    chunks: Sequence[bytes] = ()
    headers: dict[str, str] = field(default_factory=dict)
    hold: float = 0.0
    broken: bool = False


def pod_json(name: str, **changes: Any) -> dict[str, Any]:
    """A pod as a list has it: without kind."""
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "5"}} | changes


def page(*pods: dict[str, Any], version: str = "10", token: str = "") -> Answer:
    """A page of a list."""
    return Answer(
        chunks=[json.dumps({"metadata": {"resourceVersion": version, "continue": token}, "items": pods}).encode()]
    )


def event(kind: str, obj: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    """A line that only moves the resource version."""
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


class ScriptedServer:
    """Context manager. `answer` gets the number of the request from 0 and its query; `queries` is what came in."""

    def __init__(self, answer: Callable[[int, dict[str, str]], Answer]) -> None:
        self.queries: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.ending = threading.Event()
        self._answer, self._lock = answer, threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, directory: Path) -> Path:
        """A file that names this server."""
        path = directory / "kubeconfig"
        config = {
            "current-context": "t",
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
            "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{self._server.server_address[1]}"}}],
            "users": [{"name": "t", "user": {}}],
        }
        path.write_text(json.dumps(config))
        return path

    def next_answer(self, path: str) -> Answer:
        """For a request line."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        with self._lock:
            number = len(self.queries)
            self.queries.append(query)
            self.paths.append(urlsplit(path).path)
        return self._answer(number, query)


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body, sent after the header, waits 40 ms for an ACK

        def do_GET(self) -> None:
            answer = server.next_answer(self.path)
            self.send_response(answer.status)
            self.send_header("Transfer-Encoding", "chunked")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for chunk in answer.chunks:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                deadline = time.monotonic() + answer.hold
                while time.monotonic() < deadline and not server.ending.wait(0.02):
                    pass
                if answer.broken:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
