"""How much one request, and all of them together, may ask of the process. Pure ASGI, outermost first:

Guard      nothing that goes wrong inside leaves the process or shows its internals; requests are counted
Busy       requests at once; further ones are turned away
BodyLimit  the body is read whole, up to a limit, whether or not its length was announced, and while there is room
Deadline   seconds from then until the answer
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.body_budget import BYTES_OF_A_VALUE, BodyBudget, Dropped, HeldBody, is_large, json_values
from serving.json_answers import ErrorAnswer, error_response
from serving.quiet_log import QuietLog
from serving.security import OPEN_PATHS

logger = logging.getLogger(__name__)

_SHOWN = 200
"""Characters of a path in the log: a client may send 48 KiB (connections.py)."""
_HANG_UP = {"Connection": "close"}

Observe = Callable[[str, str, int, float], None]
"""(method, route, status, seconds)"""


class Guard:
    """Answers 500 to an unexpected exception, logs it, and reports every request to `observe`."""

    def __init__(self, app: ASGIApp, observe: Observe, answer: ErrorAnswer = error_response) -> None:
        self._app, self._observe, self._answer = app, observe, answer
        self._log = QuietLog(logger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the rest of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 0, time.perf_counter()

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except Exception as error:
            self._log.log(logging.ERROR, "%s %r failed", scope["method"], scope["path"][:_SHOWN], error=error)
            if status == 0:
                response = self._answer(500, "an error inside the service: its log says more; please report it")
                await response(scope, receive, watched_send)
        finally:
            # The route's pattern, not the path: a path with a node's name in it would be a series per node.
            route = getattr(scope.get("route"), "path", "other")
            self._observe(scope["method"], route, status, time.perf_counter() - began)


class Busy:
    """Limits requests at once. Further ones get 503 with Retry-After, rather than a place in a queue that outlasts
    their clients.

    Open paths do not count: a busy scorer is alive, and restarting it would make things worse; and clients without a
    token must not take places from those that have one. A request whose body is not at work gives its place to a new
    one.
    """

    def __init__(
        self, app: ASGIApp, max_concurrent: int, budget: BodyBudget, answer: ErrorAnswer = error_response
    ) -> None:
        self._app, self._max, self._budget, self._answer = app, max_concurrent, budget, answer
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or answer 503."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if self._now >= self._max and self._now - self._budget.leaving >= self._max and not self._budget.make_place():
            message = f"{self._max} requests are at work already: ask again after Retry-After seconds"
            await self._answer(503, message, {"Connection": "close"})(scope, receive, send)
            return
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1


class RequestDeadline:
    """An answer within `seconds`. What has begun to be sent is finished by the client's patience alone."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the rest, or answer 503."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched_send(message: Message) -> None:
            nonlocal begun
            begun = True
            timeout.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(self._seconds) as timeout:
                await self._app(scope, receive, watched_send)
        except TimeoutError:
            if begun or not timeout.expired():
                raise
            message = f"no answer within {self._seconds:g} s: ask for fewer nodes, or again later"
            await error_response(503, message, {"Connection": "close"})(scope, receive, send)


class BodyLimit:
    """Reads the body before the routes see it: at most `max_bytes`, within `seconds`, and as far as there is room.

    body_budget.py says what room the bodies of others leave. Open paths take no body and wait for none: what is sent to
    them is thrown away.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, seconds: float, budget: BodyBudget, answer: ErrorAnswer = error_response
    ) -> None:
        self._app, self._max, self._seconds, self._budget, self._answer = app, max_bytes, seconds, budget, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on with the whole body, or answer 413, 408 or 503."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(self._seconds)
        peer = scope["client"][0] if scope.get("client") else ""

        def give_up() -> None:
            with contextlib.suppress(RuntimeError):  # it has run out by itself
                timeout.reschedule(loop.time())

        held = self._budget.open(peer, give_up)
        whole = False
        try:
            async with timeout:
                body = await self._read(scope, receive, held)
                whole = True
                large = is_large(body or b"")
                too_large = self._why_too_large(body, large=large)
                if not too_large:
                    await self._budget.turn(held, large=large)
            if body is None or too_large:
                self._budget.release(held)
                await self._answer(413, too_large, _HANG_UP)(scope, receive, send)
            else:
                parts = [body]
                del body
                await self._app(scope, _replay(parts, receive), send)
        except (TimeoutError, Dropped):
            if held.at_work:
                raise
            if held.dropped or whole:
                message = "too many bodies arrive or are at work: ask again after Retry-After seconds, or send less"
                await self._answer(503, message, _HANG_UP)(scope, receive, send)
            else:
                message = f"the body did not arrive within {self._seconds:g} s: send it in one go"
                await self._answer(408, message, _HANG_UP)(scope, receive, send)
        finally:
            self._budget.release(held)

    def _why_too_large(self, body: bytes | None, *, large: bool) -> str:
        """Empty: it is not. body: None if it has too many bytes."""
        if body is None:
            return f"the body is larger than {self._max} bytes: name fewer nodes, or raise the limit"
        most = self._max // BYTES_OF_A_VALUE
        if large and json_values(body) > most:
            return f"the body has more than {most} values: no pod has as many, so name fewer nodes, or raise the limit"
        return ""

    async def _read(self, scope: Scope, receive: Receive, held: HeldBody) -> bytes | None:
        """The body; None if it is too large. What was announced as too large is not read at all. Raises Dropped."""
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > self._max):
            return None
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b""
            part = message.get("body", b"")
            if held.size + len(part) > self._max:
                return None
            self._budget.grow(held, len(part))
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)


def _replay(parts: list[bytes], receive: Receive) -> Receive:
    """The body once more. It is handed over rather than kept: the routes have it as long as they need it."""

    async def replay() -> Message:
        if not parts:
            return await receive()
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    return replay
