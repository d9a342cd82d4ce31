"""A real Alertmanager on a loopback port, and the notifications that it sends. Leaves no process behind."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
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
    """sent: bodies of the notifications, as webhook receivers get them."""

    url: str
    sent: list[dict[str, Any]] = field(default_factory=list)

    def fire(self, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Send alerts as Prometheus does: {"labels": ..., "annotations": ...} each."""
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200


@contextmanager
def alertmanager(directory: Path, config: Mapping[str, Any]) -> Iterator[Alertmanager]:
    """Run Alertmanager with a configuration whose receivers all send to `sent`.

    config : without receivers' settings; a receiver named "null" sends nothing
    Raises RuntimeError if it does not start.
    """
    with _receiver() as (address, sent):
        receivers = [
            {"name": one["name"]}
            | ({} if one["name"] == "null" else {"webhook_configs": [{"url": address, "send_resolved": False}]})
            for one in config["receivers"]
        ]
        (directory / "alertmanager.yml").write_text(json.dumps({**config, "receivers": receivers}))  # JSON is YAML
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
def _receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    sent: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
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
