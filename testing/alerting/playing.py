"""Plays causes before a real Prometheus and a real Alertmanager, and counts the notifications of each.

Each cause is a cluster of its own, with a target for every replica; all are played at once, an hour in minutes.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode

import yaml

from testing.alerting.causes import BEGIN, END, Cause, Steps
from testing.alerting.installation import REPLICAS, Figure, target_labels
from testing.alerting.quick_rules import quick_rules, shortened
from testing.servers.alertmanager.running import Alertmanager, alertmanager
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually

_SCRAPE_SECONDS: Final = 30.0
"""As the shipped ServiceMonitors have it."""

_EVALUATION_SECONDS: Final = 30.0
"""As kube-prometheus has it."""

_START_SECONDS: Final = 60.0

_GROUPING: Final[Mapping[str, str]] = {"group_wait": "30s", "group_interval": "5m", "repeat_interval": "12h"}
"""As kube-prometheus has it; its inhibit_rules are left out, since not everybody has them."""


@dataclass(frozen=True, slots=True)
class Played:
    """What was raised by one cause.

    fired         : alert and severity, in the order in which they came
    raised        : number of alerts, which are more than one of a name if their labels differ
    notifications : that Alertmanager sent
    fired_after   : seconds from the cause until the first alert fired, as if it were not played faster; None = none did
    sent_after    : until the first notification
    """

    cause: Cause
    fired: tuple[tuple[str, str], ...]
    raised: int
    notifications: int
    fired_after: float | None
    sent_after: float | None


def play(causes: Sequence[Cause], rules: Path, directory: Path, *, factor: float) -> list[Played]:
    """Play causes. Takes END minutes / factor.

    rules  : file of alerts
    factor : how many times faster than time goes
    """
    content = yaml.safe_load(rules.read_text())
    quick = directory / "alerts.yaml"
    quick.write_text(yaml.safe_dump(quick_rules(content, factor, every_seconds=_EVALUATION_SECONDS)))
    grouping = {name: shortened(value, factor) for name, value in _GROUPING.items()}
    with (
        alertmanager(directory, {"group_by": ["cluster"], **grouping}) as running,
        _Exporters(causes, factor) as exporters,
        PrometheusServer(
            directory / "blocks",
            rule_files=[quick],
            scrapes=[_scrapes(causes, exporters.address, factor)],
            arguments=[f"--query.lookback-delta={shortened('5m', factor)}"],
            alertmanager=running.url.removeprefix("http://"),
        ) as server,
    ):
        every = ((cause, part, replica) for cause in causes for part, n in REPLICAS.items() for replica in range(n))
        n_answering = sum(cause.answers(part, replica, 0) for cause, part, replica in every)
        assert eventually(lambda: _number(server, "sum(up)") == n_answering, _START_SECONDS), "targets do not answer"
        began = exporters.begin()
        time.sleep(60 * END / factor)
        return [_played(one, server, running, began, factor) for one in causes]


def _ask(server: PrometheusServer, path: str, **parameters: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{server.url}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def _number(server: PrometheusServer, query: str) -> float:
    return sum(float(one["value"][1]) for one in _ask(server, "query", query=query))


def _played(cause: Cause, server: PrometheusServer, running: Alertmanager, began: float, factor: float) -> Played:
    mine = [at for at, body in running.sent if body["groupLabels"].get("cluster") == cause.name]
    query = f'ALERTS{{cluster="{cause.name}",alertstate="firing"}}'
    found = _ask(server, "query_range", query=query, start=str(began), end=str(time.time()), step="0.1")
    firsts = sorted((one["values"][0][0], one["metric"]["alertname"], one["metric"]["severity"]) for one in found)

    def after(moments: Sequence[float]) -> float | None:
        return (min(moments) - began) * factor - 60 * BEGIN if moments else None

    return Played(
        cause,
        tuple(dict.fromkeys((name, severity) for _, name, severity in firsts)),
        len(found),
        len(mine),
        after([at for at, _, _ in firsts]),
        after(mine),
    )


def _scrapes(causes: Sequence[Cause], address: str, factor: float) -> dict[str, Any]:
    every = shortened(f"{_SCRAPE_SECONDS:.0f}s", factor)
    targets = [
        {
            "targets": [address],
            "labels": {
                "cluster": cause.name,
                "__metrics_path__": f"/{number}/{part}/{replica}",
                **target_labels(part, replica),
            },
        }
        for number, cause in enumerate(causes)
        for part, replicas in REPLICAS.items()
        for replica in range(replicas)
    ]
    return {"job_name": "all", "scrape_interval": every, "scrape_timeout": every, "static_configs": targets}


class _Exporters:
    """Context manager: one server for all targets, at /NUMBER OF CAUSE/PART/REPLICA. Minute 0 lasts until `begin`."""

    def __init__(self, causes: Sequence[Cause], factor: float) -> None:
        self._factor, self._began = factor, float("inf")
        self._causes = {str(number): one for number, one in enumerate(causes)}
        # By number of the cause, part and replica.
        self._figures: dict[tuple[str, str, int], list[tuple[Figure | None, Steps]]] = defaultdict(list)
        for number, cause in self._causes.items():
            for figure, steps in cause.pieces():
                self._figures[number, figure.part, figure.replica].append((figure, steps))
            for figure in cause.added:
                self._figures[number, figure.part, figure.replica].append((None, [(BEGIN, figure)]))
        respond = self._respond

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay

            def do_GET(self) -> None:
                body = respond(self.path)
                with suppress(OSError):
                    self.send_response(503 if body is None else 200)
                    self.send_header("Content-Type", "text/plain; version=0.0.4")
                    self.send_header("Content-Length", str(len(body or b"")))
                    self.end_headers()
                    self.wfile.write(body or b"")

            def log_message(self, format: str, *arguments: object) -> None:
                """Write no line for each request."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *unused: object) -> None:
                """Leave out the error of a Prometheus that ended during its request."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def begin(self) -> float:
        """Let the minutes pass. Returns the unix time."""
        self._began = time.time()
        return self._began

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def _respond(self, path: str) -> bytes | None:
        """Return the page of a target; None = it does not answer."""
        number, part, replica = path.strip("/").split("/")
        cause, now = self._causes[number], time.time()
        minute = max(0.0, (now - self._began) * self._factor / 60)
        if not cause.answers(part, int(replica), minute):
            return None
        figures = (
            next((one for start, one in reversed(steps) if minute >= start), figure)
            for figure, steps in self._figures[number, part, int(replica)]
        )
        return "".join(f"{one.selector} {one.at(minute, now)!r}\n" for one in figures if one is not None).encode()
