from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from base.errors import InputError
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.kubernetes_access import AccessLimits, AccessVerdict, KubernetesAccess
from serving.server_settings import ServingOptions
from serving.token_reviews import TOKEN_REVIEWS, ReviewFailed
from testing.app_client import AppClient
from testing.settable_clock import SettableClock
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.event_loop import in_loop


class MadeUpReviews:
    """users: by token; rights: (user, verb, path). hold: set it to let reviews end, hold_made_up: those of tokens that
    are nobody's; away: no answer at all."""

    def __init__(self) -> None:
        self.users = {"alices": "alice", "bobs": "bob"}
        self.rights = {("alice", "get", "/v1/nodes"), ("alice", "get", "/metrics")}
        self.asked: list[str] = []
        self.away = False
        self.hold = threading.Event()
        self.hold_made_up = threading.Event()
        self.hold.set()
        self.hold_made_up.set()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """As an API server answers."""
        spec = json.loads(body)["spec"]
        with self._lock:
            self.asked.append(spec["token"] if path == TOKEN_REVIEWS else spec["user"])
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            made_up = path == TOKEN_REVIEWS and spec["token"] not in self.users
            if not self.hold.wait(30) or (made_up and not self.hold_made_up.wait(30)):
                raise RuntimeError("nobody let the review end")
        finally:
            with self._lock:
                self.at_once -= 1
        if self.away:
            raise ReviewFailed("the API server does not answer")
        if path == TOKEN_REVIEWS:
            name = self.users.get(spec["token"])
            return 201, _json({"authenticated": name is not None, "user": {"username": name or ""}})
        wanted = spec["nonResourceAttributes"]
        return 201, _json({"allowed": (spec["user"], wanted["verb"], wanted["path"]) in self.rights})


def _json(status: dict[str, object]) -> bytes:
    return json.dumps({"status": status}).encode()


NARROW = AccessLimits(at_once=2, waiting=10, waiting_of_one=4)


@pytest.fixture
def reviews() -> MadeUpReviews:
    return MadeUpReviews()


@pytest.fixture
def clock() -> SettableClock[float]:
    return SettableClock(0.0)


@pytest.fixture
def access(reviews: MadeUpReviews, clock: SettableClock[float]) -> KubernetesAccess:
    return KubernetesAccess(reviews.ask, clock=clock)


def _nodes(access: KubernetesAccess, token: bytes, address: str = "") -> Coroutine[Any, Any, AccessVerdict]:
    return access.verdict(token, "get", "/v1/nodes", address)


def _metrics(access: KubernetesAccess, token: bytes, address: str = "") -> Coroutine[Any, Any, AccessVerdict]:
    return access.verdict(token, "get", "/metrics", address)


def _made_up(access: KubernetesAccess, count: int, addresses: int) -> list[asyncio.Task[AccessVerdict]]:
    """Tokens that are nobody's, from so many addresses in turn."""
    return [
        asyncio.create_task(_nodes(access, b"made-up-%d" % number, f"10.0.0.{100 + number % addresses}"))
        for number in range(count)
    ]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("token", "verb", "path", "verdict"),
    [
        (b"alices", "get", "/v1/nodes", AccessVerdict.ALLOWED),
        (b"alices", "post", "/v1/nodes", AccessVerdict.FORBIDDEN),
        (b"alices", "get", "/v1/nodes/", AccessVerdict.FORBIDDEN),
        (b"bobs", "get", "/v1/nodes", AccessVerdict.FORBIDDEN),
        (b"nobodys", "get", "/v1/nodes", AccessVerdict.NOBODY),
    ],
)
def test_the_api_server_decides(
    reviews: MadeUpReviews, token: bytes, verb: str, path: str, verdict: AccessVerdict
) -> None:
    assert asyncio.run(KubernetesAccess(reviews.ask).verdict(token, verb, path)) is verdict


@pytest.mark.parametrize("token", [b"", b"x" * 16_385, "é".encode(), b"\xff"])
def test_what_cannot_be_a_token_is_not_asked_about(reviews: MadeUpReviews, token: bytes) -> None:
    assert asyncio.run(_nodes(KubernetesAccess(reviews.ask), token)) is AccessVerdict.NOBODY
    assert reviews.asked == []


@in_loop
async def test_a_yes_counts_for_a_minute_and_a_no_for_seconds(
    reviews: MadeUpReviews, clock: SettableClock[float], access: KubernetesAccess
) -> None:
    for clock.now in (0.0, 4.9):
        assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
        assert await _nodes(access, b"bobs") is AccessVerdict.FORBIDDEN
        assert await _nodes(access, b"carols") is AccessVerdict.NOBODY
    assert sorted(reviews.asked) == ["alice", "alices", "bob", "bobs", "carols"]
    reviews.users = {"bobs": "bob", "carols": "carol"}
    reviews.rights = {("bob", "get", "/v1/nodes"), ("carol", "get", "/v1/nodes")}
    clock.now = 5.1
    for token in (b"alices", b"bobs", b"carols"):
        assert await _nodes(access, token) is AccessVerdict.ALLOWED
    clock.now = 60.1
    assert await _nodes(access, b"alices") is AccessVerdict.NOBODY


@in_loop
async def test_without_the_api_server_only_those_known_are_let_in_and_only_for_their_time(
    reviews: MadeUpReviews, clock: SettableClock[float], access: KubernetesAccess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
    reviews.away = True
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
    assert await _metrics(access, b"alices") is AccessVerdict.UNKNOWN  # never asked while it could be
    assert await _nodes(access, b"bobs") is AccessVerdict.UNKNOWN
    clock.now = 60.1
    assert await _nodes(access, b"alices") is AccessVerdict.UNKNOWN
    reviews.away = False
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
    assert len(caplog.records) == 2  # at 0 and at 60.1 s: not one per request
    assert "alices" not in caplog.text and "bobs" not in caplog.text


@in_loop
async def test_without_the_api_server_prometheus_goes_on_reading_metrics_for_an_hour(
    reviews: MadeUpReviews, clock: SettableClock[float], access: KubernetesAccess
) -> None:
    """Or the alert that the API server is away could never fire."""
    reviews.rights.add(("alice", "post", "/metrics"))
    for verb, path in (("get", "/metrics"), ("post", "/metrics"), ("get", "/v1/nodes")):
        assert await access.verdict(b"alices", verb, path) is AccessVerdict.ALLOWED
    assert await _metrics(access, b"bobs") is AccessVerdict.FORBIDDEN
    reviews.away = True
    for clock.now in (60.1, 330.0, 3599.9):
        assert await _metrics(access, b"alices") is AccessVerdict.ALLOWED
        assert await _metrics(access, b"bobs") is AccessVerdict.UNKNOWN
        assert await access.verdict(b"alices", "post", "/metrics") is AccessVerdict.UNKNOWN
        assert await _nodes(access, b"alices") is AccessVerdict.UNKNOWN
    clock.now = 3600.1
    assert await _metrics(access, b"alices") is AccessVerdict.UNKNOWN
    reviews.away = False
    assert await _metrics(access, b"alices") is AccessVerdict.ALLOWED


@pytest.mark.parametrize(
    ("gone", "path", "found"),
    [
        pytest.param("token", "/metrics", AccessVerdict.NOBODY, id="token"),
        pytest.param("token", "/v1/nodes", AccessVerdict.NOBODY, id="token, found out elsewhere"),
        pytest.param("right", "/metrics", AccessVerdict.FORBIDDEN, id="right"),
    ],
)
@in_loop
async def test_what_is_withdrawn_reads_no_metrics_once_the_api_server_is_away(
    reviews: MadeUpReviews,
    clock: SettableClock[float],
    access: KubernetesAccess,
    gone: str,
    path: str,
    found: AccessVerdict,
) -> None:
    assert await _metrics(access, b"alices") is AccessVerdict.ALLOWED
    if gone == "token":
        del reviews.users["alices"]
    else:
        reviews.rights.remove(("alice", "get", "/metrics"))
    clock.now = 60.1
    assert await access.verdict(b"alices", "get", path) is found
    reviews.away = True
    clock.now = 120.0
    assert await _metrics(access, b"alices") is AccessVerdict.UNKNOWN


@in_loop
async def test_a_flood_of_one_neighbour_keeps_out_neither_who_is_known_nor_who_is_new(reviews: MadeUpReviews) -> None:
    access = KubernetesAccess(reviews.ask, limits=NARROW)
    assert await _nodes(access, b"alices", "10.0.0.1") is AccessVerdict.ALLOWED
    reviews.asked.clear()
    reviews.hold.clear()
    flood = _made_up(access, 500, addresses=1)
    await _until(lambda: sum(task.done() for task in flood) == 496)
    assert {task.result() for task in flood if task.done()} == {AccessVerdict.BUSY}
    assert await _nodes(access, b"alices", "10.0.0.1") is AccessVerdict.ALLOWED
    newcomer = asyncio.create_task(_nodes(access, b"bobs", "10.0.0.2"))
    await _until(lambda: reviews.at_once == 2)
    reviews.hold.set()
    assert await newcomer is AccessVerdict.FORBIDDEN
    await asyncio.gather(*flood)
    assert sorted(reviews.asked) == ["bob", "bobs", *sorted(name for name in reviews.asked if "made-up" in name)]
    assert len(reviews.asked) == 4 + 2 and reviews.most_at_once == 2
    assert await _nodes(access, b"made-up-new", "10.0.0.100") is AccessVerdict.NOBODY  # its places are free again


@pytest.mark.parametrize("away", [False, True])
@in_loop
async def test_a_flood_of_many_neighbours_is_limited_and_keeps_out_nobody_who_is_known(
    reviews: MadeUpReviews, clock: SettableClock[float], away: bool
) -> None:
    """A token is reviewed again; and in an outage Prometheus goes on reading metrics."""
    access = KubernetesAccess(reviews.ask, limits=NARROW, clock=clock)
    ask = _metrics if away else _nodes
    assert await ask(access, b"alices", "10.0.0.1") is AccessVerdict.ALLOWED
    reviews.away = away
    clock.now = 1800.0 if away else 60.1  # what is known of alice has run out
    reviews.hold_made_up.clear()
    flood = _made_up(access, 100, addresses=5)
    await _until(lambda: sum(task.done() for task in flood) == 90 and reviews.at_once == 2)
    assert await _nodes(access, b"bobs", "10.0.0.7") is AccessVerdict.BUSY
    assert await ask(access, b"alices", "10.0.0.1") is AccessVerdict.ALLOWED
    if not away:
        clock.now = 700.0  # too long ago: like anybody who is new
        assert await _nodes(access, b"alices", "10.0.0.1") is AccessVerdict.BUSY
    reviews.hold_made_up.set()
    await asyncio.gather(*flood)
    assert sum("made-up" in name for name in reviews.asked) == 10


@in_loop
async def test_a_question_is_asked_once_and_familiar_tokens_wait_in_few_places(
    reviews: MadeUpReviews, access: KubernetesAccess
) -> None:
    reviews.hold.clear()
    first = asyncio.create_task(access.verdict(b"alices", "get", "/v1/nodes"))
    await _until(lambda: bool(reviews.asked))
    others = [asyncio.create_task(access.verdict(b"alices", "get", "/v1/nodes")) for _ in range(10)]
    await asyncio.sleep(0.01)
    first.cancel()
    reviews.hold.set()
    assert set(await asyncio.gather(*others)) == {AccessVerdict.ALLOWED}
    assert reviews.asked == ["alices", "alice"]
    limits = AccessLimits(waiting=10, waiting_of_one=4, familiar_at_once=3)
    access = KubernetesAccess(reviews.ask, limits=limits)
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
    reviews.hold.clear()
    asked = [asyncio.create_task(access.verdict(b"alices", "get", f"/{number}")) for number in range(20)]
    await _until(lambda: sum(task.done() for task in asked) == 16 and reviews.at_once == 3)
    reviews.hold.set()
    await asyncio.gather(*asked)
    assert reviews.most_at_once == 3


@in_loop
async def test_made_up_tokens_push_out_nobody_who_is_let_in(reviews: MadeUpReviews) -> None:
    access = KubernetesAccess(reviews.ask, limits=AccessLimits(most=3))
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED
    for number in range(20):
        assert await _nodes(access, b"made-up-%d" % number) is AccessVerdict.NOBODY
    reviews.away = True
    assert await _nodes(access, b"alices") is AccessVerdict.ALLOWED


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at_once is 0"):
        AccessLimits(at_once=0)


def _get(client: AppClient, token: str | None, path: str = "/v1/nodes") -> tuple[int, str]:
    answer = client.get(path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    return answer.status_code, answer.json().get("error", "")


def test_the_service_says_what_is_wrong_with_a_token(scorer: FakeScorer, reviews: MadeUpReviews) -> None:
    app = create_app(scorer, access=KubernetesAccess(reviews.ask), hot=HOT_SHARE)
    with AppClient(app) as client:
        assert client.get("/healthz").status_code == client.get("/").status_code == 200
        assert reviews.asked == []
        assert _get(client, None) == (401, "a token is needed: send Authorization: Bearer TOKEN")
        assert reviews.asked == []
        assert _get(client, "alices")[0] == 200
        status, error = _get(client, "bobs")
        assert status == 403
        assert "this token's user may not get /v1/nodes" in error and "docs/operate/security.md" in error
        assert _get(client, "nobodys") == (401, "the token is not valid: ask for the current one")
        assert client.get("/v1/nodes", headers={"Authorization": "Basic YWxpY2VzOg=="}).status_code == 401
        reviews.away = True
        answer = client.get("/v1/nodes", headers={"Authorization": "Bearer news"})
        assert answer.status_code == 503 and answer.headers["retry-after"]
        assert "securitySchemes" in app.openapi()["components"]


def test_a_token_of_a_file_needs_no_review(scorer: FakeScorer, reviews: MadeUpReviews, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("from-the-file")
    app = create_app(
        scorer,
        ScorerServiceOptions(serving=ServingOptions(token_files=(path,))),
        access=KubernetesAccess(reviews.ask),
        hot=HOT_SHARE,
    )
    with AppClient(app) as client:
        assert _get(client, "from-the-file", "/v1/status")[0] == 200
        assert reviews.asked == []
        assert _get(client, "alices")[0] == 200
        assert _get(client, "alices", "/v1/status")[0] == 403
