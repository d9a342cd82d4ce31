"""A real single node of VictoriaMetrics on a loopback port, with what is loaded into it. Leaves no process behind."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.servers.control_plane.process import ServerProcess
from testing.servers.openmetrics import MetricSeries
from testing.servers.prometheus import free_port
from testing.servers.stores.programs import victoria_metrics
from testing.timings import timed

_START_SECONDS: Final = 60
_LINES_AT_ONCE: Final = 200_000


class VictoriaMetrics:
    """Context manager.

    directory : where it keeps its data; arguments: further flags; scrapes: entries of scrape_configs
    """

    def __init__(
        self, directory: Path, arguments: Sequence[str] = (), scrapes: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        if scrapes:
            config = directory / "scrapes.yml"
            config.write_text(json.dumps({"scrape_configs": list(scrapes)}))  # JSON is YAML, too
            arguments = [*arguments, f"-promscrape.config={config}"]
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        self._process = ServerProcess(
            [
                str(victoria_metrics()),
                f"-storageDataPath={directory / 'data'}",
                f"-httpListenAddr={address}",
                "-retentionPeriod=100y",
                "-loggerLevel=WARN",
                *arguments,
            ],
            directory / "victoria-metrics.log",
        )

    def __enter__(self) -> Self:
        with timed("VictoriaMetrics"):
            self._process.start(self._answers, _START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()

    def load(self, series: Sequence[MetricSeries]) -> None:
        """Write samples; they are found by queries from then on."""
        lines = _lines(series)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            self._send("/api/v1/import/prometheus", "\n".join(some).encode())
        self._send("/internal/force_flush")

    def _send(self, path: str, body: bytes | None = None) -> None:
        with urllib.request.urlopen(self.url + path, body, timeout=60) as answer:
            answer.read()

    def _answers(self) -> bool:
        try:
            self._send("/health")
        except (OSError, urllib.error.URLError):
            return False
        return True


def _lines(series: Sequence[MetricSeries]) -> Iterator[str]:
    """The exposition format, whose times are milliseconds."""
    for one in series:
        prefix = one.prefix
        for value, time in zip(one.values.tolist(), one.times.tolist(), strict=True):
            yield f"{prefix} {value!r} {time}000"
