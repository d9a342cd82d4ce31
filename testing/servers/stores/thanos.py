"""A real Thanos over Prometheus replicas: a sidecar beside each, and a querier that deduplicates them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from testing.servers.control_plane.process import ServerProcess
from testing.servers.prometheus import PrometheusServer, free_port
from testing.servers.stores.programs import thanos
from testing.timings import timed
from testing.waiting import eventually

_START_SECONDS: Final = 60
REPLICA_LABEL: Final = "replica"
"""External label by which the replicas differ."""


class Thanos:
    """Context manager. url: of the querier.

    replicas  : that run already, each with another value of the external label REPLICA_LABEL
    directory : for logs
    """

    def __init__(self, replicas: Sequence[PrometheusServer], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._stack, self._sidecars, endpoints = ExitStack(), list[tuple[ServerProcess, str]](), list[str]()
        for number, replica in enumerate(replicas):
            http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
            arguments = [
                "sidecar",
                f"--prometheus.url={replica.url}",
                f"--tsdb.path={replica.blocks}",
                f"--http-address={http}",
                f"--grpc-address={grpc}",
                "--log.level=warn",
            ]
            log = directory / f"sidecar-{number}.log"
            self._sidecars.append((ServerProcess([str(thanos()), *arguments], log), f"http://{http}"))
            endpoints.append(f"--endpoint={grpc}")
        http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.url = f"http://{http}"
        arguments = [
            "query",
            f"--http-address={http}",
            f"--grpc-address={grpc}",
            f"--query.replica-label={REPLICA_LABEL}",
            "--log.level=warn",
            *endpoints,
        ]
        self._query = ServerProcess([str(thanos()), *arguments], directory / "query.log")

    def __enter__(self) -> Self:
        with ExitStack() as stack, timed("Thanos"):
            for process, url in self._sidecars:
                stack.callback(process.kill)
                process.start(lambda url=url: _is_ready(url), _START_SECONDS)  # type: ignore[misc]
            stack.callback(self._query.kill)
            self._query.start(lambda: _is_ready(self.url), _START_SECONDS)
            # It is ready before it knows its stores.
            assert eventually(lambda: self._n_stores() == len(self._sidecars)), self._query.log.read_text()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _n_stores(self) -> int:
        """How many sidecars the querier has reached and found well."""
        with urllib.request.urlopen(f"{self.url}/api/v1/stores", timeout=5) as answer:
            stores = json.load(answer)["data"]
        return sum(not one["lastError"] for one in stores.get("sidecar", []))


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
