"""Which statuses are due, and what becomes of those after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from kube.client.api_answer import ApiAnswer
from kube.status.status_patches import StatusChange, StatusPatches, is_hopeless


class Server:
    """Answers with `statuses` by path, 200 for others; `step` returns the paths that were patched."""

    def __init__(self, **settings: Any) -> None:
        self.now, self.statuses, self.leads = 100.0, dict[str, int](), True
        self.sent: list[tuple[str, Any]] = []
        self.patches = StatusPatches(self, "things", clock=lambda: self.now, may_write=lambda: self.leads, **settings)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(asyncio.run(work))
        return done

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        path = path.removesuffix("/status")
        self.sent.append((path, msgspec.json.decode(body or b"")))
        return ApiAnswer(self.statuses.get(path, 200), b"{}", "text")

    def step(self, *changes: StatusChange, at: float) -> str:
        self.now = at
        self.sent.clear()
        self.patches.step(lambda now: changes)
        return "".join(path for path, _ in self.sent)


def change(path: str, wanted: str = "ready", **others: Any) -> StatusChange:
    return StatusChange(path, wanted, {"is": wanted}, others.pop("right", "things/status"), **others)


def test_a_change_waits_two_seconds_and_the_same_thirty_unless_the_clock_was_set_back() -> None:
    server = Server()
    assert server.step(change("a"), at=100) == "a"
    assert server.step(change("a"), change("b"), at=101.9) == "b"
    assert [server.step(change("a", "lost"), at=at) for at in (101.95, 102.0)] == ["", "a"]
    assert [server.step(change("a", "lost"), at=at) for at in (131.9, 132.0)] == ["", "a"]
    assert server.step(change("a", "lost"), at=90) == "a"
    assert server.step(change("a", "lost", uid="of another"), at=91) == "a"


def test_the_version_that_was_read_is_a_precondition() -> None:
    server = Server()
    server.step(change("a", version="7"), change("b"), at=100)
    assert [body.get("metadata") for _, body in server.sent] == [{"resourceVersion": "7"}, None]


def test_so_many_are_written_a_second() -> None:
    server = Server(rate=2)
    all_of_them = [change(name) for name in "abcde"]
    assert [server.step(*all_of_them, at=at) for at in (100, 101, 102, 103)] == ["ab", "cd", "e", ""]


@pytest.mark.parametrize(
    ("status", "sent", "next_"), [(500, "a", "b"), (0, "a", "b"), (422, "ab", ""), (409, "ab", "")]
)
def test_a_failure_is_tried_again_after_two_seconds_and_the_rest_waits_if_it_would_meet_the_same(
    status: int, sent: str, next_: str
) -> None:
    server = Server()
    server.statuses["a"] = status
    assert server.step(change("a"), change("b"), at=100) == sent
    assert server.step(change("a"), change("b"), at=101) == next_
    assert server.step(change("a"), at=102) == "a"


def test_a_failure_waits_also_where_changes_are_written_at_once() -> None:
    server = Server(each_seconds=0.0)
    server.statuses["a"] = 500
    assert [server.step(change("a"), at=at) for at in (100, 101, 102)] == ["a", "", "a"]


def test_an_object_that_is_gone_is_left_to_the_watch() -> None:
    server = Server()
    server.statuses["a"] = 404
    assert [server.step(change("a"), at=at) for at in (100, 102, 131)] == ["a", "", "a"]


def test_a_missing_right_leaves_the_others_of_its_kind_unasked_and_waits_thirty_seconds() -> None:
    server = Server()
    server.statuses["a"] = 403
    assert server.step(change("a"), change("b"), change("c", right="others/status"), at=100) == "ac"
    assert server.step(change("a"), at=101) == ""


def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    server = Server()
    server.leads = False
    assert server.step(change("a"), at=100) == ""


def test_the_rest_waits_after_answers_that_every_patch_would_get() -> None:
    assert all(map(is_hopeless, (-1, 0, 401, 429, 500, 503)))
    assert not any(map(is_hopeless, (200, 403, 404, 409, 422)))
