"""A real Alertmanager on a loopback port, and the notifications that it sends. Leaves no process behind."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testing.servers.program_cache import program_of
from testing.servers.prometheus import free_port

_PACKAGE = "github.com/prometheus/alertmanager/cmd/alertmanager"


def _program() -> Path:
    """The program; the first call on a machine without one builds it."""
    otherwise = "install Alertmanager (https://prometheus.io/download/#alertmanager)"
    return program_of(Path(__file__).with_name("go"), "alertmanager", _PACKAGE, otherwise=otherwise)


@dataclass(frozen=True)
class Alertmanager:
    """sent: notifications, each with its unix time and its body as webhook receivers get it."""

    url: str
    sent: list[tuple[float, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def alertmanager(directory: Path, route: Mapping[str, Any]) -> Iterator[Alertmanager]:
    """Run Alertmanager with one receiver, which keeps what is sent. Raises RuntimeError if it does not start.

    route : how alerts are grouped, as in Alertmanager's configuration
    """
    with _receiver() as (address, sent):
        receiver = {"name": "all", "webhook_configs": [{"url": address, "send_resolved": False}]}
        config = {"receivers": [receiver], "route": {"receiver": "all", **route}}
        (directory / "alertmanager.yml").write_text(json.dumps(config))  # JSON is YAML
        port = free_port()
        with (directory / "alertmanager.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    str(_program()),
                    f"--config.file={directory / 'alertmanager.yml'}",
                    f"--storage.path={directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_ready(url, process, directory / "alertmanager.log")
            yield Alertmanager(url, sent)
        finally:
            process.kill()
            process.wait()


def _wait_ready(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    raise RuntimeError(f"Alertmanager did not start: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def _receiver() -> Iterator[tuple[str, list[tuple[float, dict[str, Any]]]]]:
    sent: list[tuple[float, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append((time.time(), json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
