from __future__ import annotations

import threading
import time

import httpx

from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from serving.server import Heartbeat, ScorerServer, probe_app
from serving.server_settings import ServerOptions
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer


def test_an_event_loop_that_stands_still_fails_its_probe() -> None:
    now = [100.0]
    heartbeat = Heartbeat(lambda: now[0])
    with AppClient(probe_app(heartbeat)) as client:
        now[0] += 29
        assert client.get("/healthz").status_code == 200
        now[0] += 11
        answer = client.get("/healthz")
        assert answer.status_code == 503 and "stood still for 40 s" in answer.text
        heartbeat.beat()
        assert client.get("/healthz").status_code == 200


def test_probes_are_answered_while_the_event_loop_is_busy(scorer: FakeScorer) -> None:
    entered: list[float] = []

    def busy() -> None:
        entered.append(time.monotonic())
        time.sleep(3)  # on the event loop

    started = threading.Event()
    server = ScorerServer(
        create_app(scorer, hot=HOT_SHARE), ServerOptions(port=0, probe_port=0), lambda url: started.set()
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert started.wait(30) and server.probe_url is not None
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        server._loop.call_soon_threadsafe(busy)  # type: ignore[union-attr]
        while not entered:
            time.sleep(0.001)
        assert httpx.get(f"{server.probe_url}/healthz", timeout=2).status_code == 200
        assert time.monotonic() < entered[0] + 3, "the machine is too busy to tell"
        assert httpx.get(f"{server.probe_url}/v1/nodes").status_code == 404
    finally:
        server.stop()
        thread.join(30)
