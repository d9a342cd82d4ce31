"""An advisor that answers, fails, says nonsense or nothing: the pod waits for a moment, and not every time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from admission.advice.advisor_client import FAILURES_BEFORE_PAUSE, AskOutcome, PreferencesOfAdvisor, QuestionPauses
from placement.preferred_nodes import PREFERENCES, PreferencesBody, PreferredNode
from serving.remote_service import RemoteAddress
from testing.settable_clock import SettableClock

POD = {"metadata": {"name": "cart-"}, "spec": {}}
NODES = {"nodes": [{"node": "n1", "weight": 100}], "note": "{}", "because": ""}


class Advisor:
    """Answers with `body` and `status`, `seconds` later. asked: bodies; clients: their ports, one per connection."""

    def __init__(self) -> None:
        self.body: bytes = json.dumps(NODES).encode()
        self.status, self.seconds = 200, 0.0
        self.asked: list[Any] = []
        self.clients: set[int] = set()
        advisor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                assert self.path == PREFERENCES
                advisor.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                advisor.clients.add(self.client_address[1])
                time.sleep(advisor.seconds)
                self.send_response(advisor.status)
                self.send_header("Content-Length", str(len(advisor.body)))
                self.end_headers()
                self.wfile.write(advisor.body)

            def log_message(self, format: str, *args: Any) -> None:
                """Log no request."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def advisor() -> Iterator[Advisor]:
    running = Advisor()
    thread = threading.Thread(target=running.server.serve_forever, daemon=True)
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()


def _asking(url: str, clock: SettableClock[float] | None = None, seconds: float = 5.0) -> PreferencesOfAdvisor:
    return PreferencesOfAdvisor(
        RemoteAddress(url, seconds=seconds), pauses=QuestionPauses(clock=clock or SettableClock(0.0))
    )


def test_nodes_come_back_over_one_connection(advisor: Advisor) -> None:
    asking = _asking(advisor.url)
    for dry_run in (False, True):
        assert asking.ask(POD, dry_run=dry_run) == PreferencesBody([PreferredNode("n1", 100)], "{}")
    assert advisor.asked == [{"pod": POD, "seconds": 5.0, "dry_run": dry_run} for dry_run in (False, True)]
    assert len(advisor.clients) == 1
    advisor.body = json.dumps(NODES | {"nodes": [], "because": "there is no usable forecast"}).encode()
    assert asking.ask(POD, dry_run=False) is None
    assert asking.outcomes == {AskOutcome.PREFERRED: 2, AskOutcome.NONE: 1}
    asking.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, b'{"error": "not ready"}'), (401, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"nodes": [{"node": 1}]}'),
     (200, b'{"nodes": [], "note": "\xff"}'), (200, b"[" * 100_000),
     (200, b'{"nodes": [{"node": "n1", "weight": 101}]}')],
)  # fmt: skip
def test_an_answer_that_is_none_is_no_preference(advisor: Advisor, status: int, body: bytes) -> None:
    asking = _asking(advisor.url)
    advisor.status, advisor.body = status, body
    assert asking.ask(POD, dry_run=False) is None
    assert asking.outcomes == {AskOutcome.FAILED: 1}


def test_a_late_answer_is_not_waited_for(advisor: Advisor) -> None:
    asking = _asking(advisor.url, seconds=0.1)
    advisor.seconds = 1.0
    began = time.monotonic()
    assert asking.ask(POD, dry_run=False) is None
    assert time.monotonic() - began < 0.9


def test_after_a_pause_one_tries_and_the_others_wait_for_what_comes_of_it() -> None:
    clock = SettableClock(0.0)
    pauses = QuestionPauses(clock=clock)
    for _ in range(FAILURES_BEFORE_PAUSE):
        assert pauses.may_ask()
        pauses.failed()
    clock.now = 1.0
    assert [pauses.may_ask() for _ in range(3)] == [True, False, False]
    for _ in range(10):
        pauses.failed()
    clock.now += 1.9
    assert not pauses.may_ask()
    clock.now += 0.2
    assert pauses.may_ask()
    pauses.succeeded()
    assert all(pauses.may_ask() for _ in range(3))


@pytest.mark.parametrize(("status", "pauses"), [(400, False), (413, False), (422, False), (500, True)])
def test_a_dead_advisor_is_not_asked_for_every_pod_and_one_that_refuses_pods_is(
    advisor: Advisor, status: int, pauses: bool
) -> None:
    clock = SettableClock(0.0)
    asking = _asking(advisor.url, clock)
    advisor.status = status
    for _ in range(FAILURES_BEFORE_PAUSE + 2):
        assert asking.ask(POD, dry_run=False) is None
    assert len(advisor.asked) == FAILURES_BEFORE_PAUSE + (0 if pauses else 2)
    clock.now, advisor.status = 1.0, 200
    assert asking.ask(POD, dry_run=False) is not None


def test_metrics(advisor: Advisor) -> None:
    asking, registry = _asking(advisor.url), CollectorRegistry()
    asking.ask(POD, dry_run=False)
    registry.register(asking)
    lines = generate_latest(registry).decode().splitlines()
    assert [line.rpartition(" ")[2] for line in lines if not line.startswith("#")] == ["1.0", "0.0", "0.0", "0.0"]
