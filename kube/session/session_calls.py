"""Work of a session: one request, asked again while that may help, and a thread that waits for what the event loop
does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

from base.backoff import Backoff
from base.errors import ForecastError
from kube.client.api_answer import NO_ANSWER, ApiAnswer, is_gone, not_sent

T = TypeVar("T")

_BACKOFF: Final = Backoff()
_CONFLICT: Final = 409
_PASSING: Final = frozenset({NO_ANSWER, 408, 429, *range(500, 600)})


class Requests(Protocol):
    """kube.session.api_session.ApiSession."""

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = ..., seconds: float
    ) -> ApiAnswer:
        """One request, whatever becomes of it."""


class SubmitsCoroutines(Protocol):
    """kube.session.api_session.ApiSession, as its users in other threads see it."""

    def submit(self, work: Coroutine[Any, Any, Any], /) -> Future[Any]:
        """Run a coroutine in the loop of the session. Raises SessionOver."""


class Session(Requests, SubmitsCoroutines, Protocol):
    """Sends requests, and runs coroutines in its loop."""


class SessionOver(RuntimeError):
    """The session has not been started, or has been stopped."""


def is_passing(answer: ApiAnswer) -> bool:
    """Whether the same request may be answered otherwise a moment later."""
    return answer.status in _PASSING


def is_passing_or_conflict(answer: ApiAnswer) -> bool:
    """Return the same for a request without a resourceVersion: another client wrote in the same moment."""
    return is_passing(answer) or (answer.status == _CONFLICT and not is_gone(answer))


async def request_with_retries(
    session: Requests,
    method: str,
    path: str,
    body: bytes | Callable[[], bytes] | None = None,
    *,
    content_type: str = "application/json",
    seconds: float = 5.0,
    tries: int = 4,
    worth_it: Callable[[ApiAnswer], bool] = is_passing,
    still_wanted: Callable[[], bool] = lambda: True,
) -> ApiAnswer:
    """The last answer. What is sent here may be sent twice: after no answer it is not known what became of it.

    body         : or what makes it anew for every try
    seconds      : of each try; between them 0.2, 0.4, 0.8 s, ... pass, or what the server asks for
    worth_it     : whether to try again after such an answer
    still_wanted : asked before every try, the first included
    """
    for attempt in range(tries):
        if not still_wanted():
            return not_sent("it is not wanted any more")
        content = body() if callable(body) else body
        answer = await session.request(method, path, content, content_type=content_type, seconds=seconds)
        if attempt == tries - 1 or not worth_it(answer):
            return answer
        await asyncio.sleep(max(answer.retry_after_seconds, _BACKOFF.seconds(attempt + 1)))
    return not_sent("no tries")


class CallTimedOut(ForecastError, TimeoutError):
    """The work did not end in time, and has been cancelled."""


def begin(session: SubmitsCoroutines, work: Coroutine[Any, Any, Any]) -> Future[Any] | None:
    """Start a coroutine that this thread does not wait for; None = the session is over, and it will never run."""
    try:
        return session.submit(work)
    except RuntimeError:
        work.close()
        return None


def call(session: SubmitsCoroutines, work: Coroutine[Any, Any, T], seconds: float, what: str) -> T:
    """What a coroutine returns that runs in the loop of a session. what: it does, for the error.

    Raises CallTimedOut, SessionOver, and what the coroutine raises.
    """
    result: T = wait_for(session.submit(work), seconds, what)
    return result


def wait_for(future: Future[T], seconds: float, what: str) -> T:
    """What work that was begun returns, see `call`. The only place where a thread waits for the loop of a session."""
    try:
        return future.result(max(seconds, 0.0))
    except TimeoutError as error:
        if future.done() and not future.cancelled():  # its own, not ours
            raise
        future.cancel()
        raise CallTimedOut(
            f"{what} did not end within {seconds:g} s and was given up: look at the load of the API server"
        ) from error
