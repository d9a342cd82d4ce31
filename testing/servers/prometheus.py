"""A real Prometheus on a loopback port, over blocks that were back-filled. Leaves no process behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testing.servers.program_cache import unpacked_once
from testing.timings import timed

_INSTALL = Path(__file__).with_name("install_prometheus.sh")


@cache
def _binaries() -> Path:
    """Directory with prometheus and promtool: $PROMETHEUS_BIN, PATH, our cache, or downloaded into it."""
    candidates = [os.environ.get("PROMETHEUS_BIN"), os.path.dirname(shutil.which("promtool") or "")]
    for candidate in candidates:
        if candidate and all((Path(candidate) / name).exists() for name in ("prometheus", "promtool")):
            return Path(candidate)
    return unpacked_once("prometheus", _INSTALL) / "usr/bin"


def promtool_path() -> Path:
    """Return the program that writes and checks blocks; Prometheus is beside it."""
    return _binaries() / "promtool"


def promtool(*arguments: str | Path, program: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool, by default that of promtool_path; raises CalledProcessError."""
    return subprocess.run(
        [str(program or promtool_path()), *map(str, arguments)], check=True, capture_output=True, text=True
    )


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PrometheusServer:
    """Context manager. `url` stays the same over stop() and start().

    blocks          : the TSDB's directory
    rule_files      : recording rules to evaluate
    scrapes         : entries of scrape_configs
    arguments       : further flags, such as --query.max-samples=1000
    port            : 0 = any free one
    external_labels : of what it gives to others, such as Thanos
    alertmanager    : host:port that it sends alerts to
    program         : another prometheus than the one of promtool_path
    """

    def __init__(
        self,
        blocks: Path,
        *,
        rule_files: Sequence[Path] = (),
        scrapes: Sequence[Mapping[str, Any]] = (),
        arguments: Sequence[str] = (),
        port: int = 0,
        external_labels: Mapping[str, str] | None = None,
        program: Path | None = None,
        alertmanager: str = "",
    ) -> None:
        self._alertmanager = alertmanager
        self._external_labels, self._program = dict(external_labels or {}), program
        self.blocks, self._rule_files, self._arguments = blocks, rule_files, arguments
        self._scrapes = [dict(one) for one in scrapes]
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, seconds: float = 60) -> None:
        """Start and wait until it answers."""
        self.blocks.mkdir(parents=True, exist_ok=True)
        config = self.blocks / "prometheus.yml"
        rules = "".join(f"  - {path}\n" for path in self._rule_files)
        # JSON is YAML, too.
        scrapes = f"scrape_configs: {json.dumps(self._scrapes)}\n"
        # The interval is that of groups that do not say how often.
        labels = json.dumps(self._external_labels)
        every = f"global: {{evaluation_interval: 15s, external_labels: {labels}}}\n"
        to = [{"static_configs": [{"targets": [self._alertmanager]}]}] if self._alertmanager else []
        config.write_text(
            every
            + f"alerting: {json.dumps({'alertmanagers': to})}\n"
            + scrapes
            + (f"rule_files:\n{rules}" if rules else "")
        )
        log = (self.blocks / "prometheus.log").open("ab")
        self._process = subprocess.Popen(
            [
                str(self._program or _binaries() / "prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={self.blocks}",
                "--storage.tsdb.retention.time=400d",
                # Equal durations switch compaction off: it would only compete with the test for the processor.
                "--storage.tsdb.min-block-duration=2h",
                "--storage.tsdb.max-block-duration=2h",
                f"--web.listen-address=127.0.0.1:{self.port}",
                *self._arguments,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.close()
        deadline = time.monotonic() + seconds
        with timed("Prometheus"):
            while not self._ready():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"prometheus did not start: {(self.blocks / 'prometheus.log').read_text()[-2000:]}"
                    )
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop it now; harmless if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False
