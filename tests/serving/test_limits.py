from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from base.errors import InputError
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServingOptions
from testing.app_client import AppClient
from testing.constants import with_constants
from testing.waiting import eventually
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served


async def _in_parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_a_body_is_refused_by_its_length_or_if_it_trickles_in(scorer: FakeScorer) -> None:
    with AppClient(
        create_app(scorer, ScorerServiceOptions(serving=ServingOptions(max_body_bytes=100)), hot=HOT_SHARE)
    ) as client:
        answer = client.post("/v1/scores", content=b" " * 101)
        assert answer.status_code == 413 and "larger than 100 bytes" in answer.json()["error"]
        assert client.post("/v1/scores", content=b" " * 100).status_code == 400  # read, and not JSON
        unending = client.post("/v1/scores", content=b"", headers={"Content-Length": "9" * 5000})
        assert unending.status_code == 413
    with AppClient(
        create_app(scorer, ScorerServiceOptions(serving=ServingOptions(max_body_bytes=100)), hot=HOT_SHARE)
    ) as client:
        assert client.post("/v1/scores", content=_in_parts(b" " * 60, b" " * 41)).status_code == 413
        assert client.post("/v1/scores", content=_in_parts(b" " * 60, b" " * 40)).status_code == 400

    async def trickle() -> AsyncIterator[bytes]:
        import asyncio

        while True:
            yield b" "
            await asyncio.sleep(0.01)

    with AppClient(create_app(scorer, with_constants(ScorerServiceOptions(), deadline=0.2), hot=HOT_SHARE)) as client:
        answer = client.post("/v1/scores", content=trickle())
    assert answer.status_code == 408 and "did not arrive within 0.2 s" in answer.json()["error"]


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    scorer, release = FakeScorer(3), threading.Event()  # an answer about its 50 nodes takes longer on a busy machine

    def wait() -> None:
        release.wait(20)

    scorer.fail = wait
    with AppClient(create_app(scorer, with_constants(ScorerServiceOptions(), deadline=0.2), hot=HOT_SHARE)) as client:
        answer = client.get("/v1/nodes")
        assert answer.status_code == 503 and "no answer within 0.2 s" in answer.json()["error"]
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/healthz").status_code == 200
        release.set()
        # A busy machine may need more than 0.2 s for an answer, but not for ever.
        assert eventually(lambda: client.get("/v1/nodes").status_code == 200)


def test_more_requests_than_allowed_are_turned_away_but_those_of_open_paths_are_not(scorer: FakeScorer) -> None:
    scorer.fail = lambda: time.sleep(0.6)
    with AppClient(
        create_app(scorer, ScorerServiceOptions(serving=ServingOptions(max_concurrent=2)), hot=HOT_SHARE)
    ) as client:
        answers = client.together(
            *[("GET", "/v1/nodes")] * 5, ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/page.js")
        )
        assert sorted(answer.status_code for answer in answers[:5]) == [200, 200, 503, 503, 503]
        refused = next(answer for answer in answers if answer.status_code == 503)
        assert "2 requests are at work" in refused.json()["error"] and int(refused.headers["retry-after"]) > 0
        assert [answer.status_code for answer in answers[5:]] == [200, 200, 200]
        assert client.get("/v1/nodes").status_code == 200  # the places were given back


@pytest.mark.parametrize("name", ["max_body_bytes", "max_concurrent"])
def test_options_that_cannot_be_are_refused(name: str) -> None:
    wrong: dict[str, Any] = {"serving": {name: 0}}
    with pytest.raises(InputError, match=rf"serving\.{name} is 0"):
        ScorerServiceOptions(**wrong)


def test_incomplete_bodies_take_no_place_from_other_requests(scorer: FakeScorer) -> None:
    with (
        served(
            create_app(scorer, ScorerServiceOptions(serving=ServingOptions(max_concurrent=2)), hot=HOT_SHARE)
        ) as url,
        ExitStack() as stack,
    ):
        where = httpx.URL(url)
        head = f"POST /v1/scores HTTP/1.1\r\nHost: {where.netloc.decode()}\r\nContent-Type: application/json\r\n"
        for _ in range(6):
            incomplete = stack.enter_context(socket.create_connection((where.host, where.port or 80)))
            incomplete.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        for _ in range(3):
            assert httpx.get(f"{url}/v1/nodes").status_code == 200
