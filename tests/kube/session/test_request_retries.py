"""What is asked again, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube.client.api_answer import NOT_SENT, ApiAnswer, answered, unanswered
from kube.session.session_calls import is_passing, is_passing_or_conflict, request_with_retries

ANOTHER_UID = b'{"message":"Operation cannot be fulfilled: the UID in the precondition (a) does not match"}'


class Session:
    """Implements Requests: says one answer after the other."""

    def __init__(self, *answers: ApiAnswer) -> None:
        self._answers, self.bodies = list(answers), []  # type: tuple[list[ApiAnswer], list[bytes | None]]

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        self.bodies.append(body)
        return self._answers.pop(0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited for; no time passes."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("asyncio.sleep", sleep)
    return made


def ask(session: Session, body: Callable[[], bytes] = lambda: b"{}", **settings: Any) -> ApiAnswer:
    return asyncio.run(request_with_retries(session, "PATCH", "/p", body, **settings))


@pytest.mark.parametrize("status", [200, 403, 404, 409, 422])
def test_what_would_be_answered_the_same(pauses: list[float], status: int) -> None:
    session = Session(answered(status, b"{}"))
    assert ask(session).status == status and not pauses


def test_requests_are_tried_until_they_work_and_so_often(pauses: list[float]) -> None:
    numbers = iter(range(9))
    session = Session(unanswered(TimeoutError()), answered(503, b""), answered(429, b"", "7"), answered(200, b"ok"))
    assert ask(session, lambda: b"%d" % next(numbers)).body == b"ok"
    assert session.bodies == [b"0", b"1", b"2", b"3"] and pauses == [0.2, 0.4, 7.0]
    pauses.clear()
    session = Session(*[answered(500, b"%d" % number) for number in range(9)])
    assert ask(session, tries=3).body == b"2"
    assert len(pauses) == 2
    session = Session(answered(409, b"{}"), answered(200, b""))
    assert ask(session, worth_it=is_passing_or_conflict).is_success
    assert not is_passing(answered(409, b"{}")) and not is_passing_or_conflict(answered(409, ANOTHER_UID))
    assert is_passing_or_conflict(answered(429, b"")) and not is_passing_or_conflict(answered(422, b""))


@pytest.mark.parametrize("wanted_for", [0, 1, 2])
def test_what_is_not_wanted_any_more_is_not_sent(pauses: list[float], wanted_for: int) -> None:
    session = Session(*[answered(500, b"")] * 4)
    left = iter([True] * wanted_for + [False] * 9)
    assert ask(session, still_wanted=lambda: next(left)).status == NOT_SENT
    assert len(session.bodies) == wanted_for
