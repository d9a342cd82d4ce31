"""Who may ask: bearer tokens from files, and the headers that keep a browser from doing what it should not.

Client certificates (mTLS) are checked while the connection is made, in server.py.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forecast.errors import InputError
from scorer.service.errors import ErrorAnswer, error_response
from scorer.service.routes.page import PAGE_FILES

__all__ = ["Authentication", "BearerTokens", "SecurityHeaders"]

logger = logging.getLogger(__name__)

# Kubernetes probes carry no token; the page's files hold no data.
OPEN_PATHS = frozenset({"/healthz", "/readyz", *PAGE_FILES})
CHECK_SECONDS = 1.0

Stamp = tuple[int, int, int]


class BearerTokens:
    """The tokens that are valid now. Raises InputError if a file cannot be read or holds none at the start.

    A file that later vanishes or is emptied keeps its old tokens, with a warning: a half-written secret must not lock
    everybody out, nor let everybody in.
    """

    def __init__(self, files: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._files, self._clock, self._lock = tuple(files), clock, threading.Lock()
        self._read: dict[Path, tuple[Stamp, tuple[bytes, ...]]] = {}
        for path in self._files:
            self._read[path] = self._read_file(path)
        self._checked = clock()

    def accepts(self, authorization: bytes | None) -> bool:
        """Whether the value of an Authorization header carries a valid token."""
        self._refresh()
        scheme, _, given = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return False
        given = given.strip()
        # Every token is compared, in constant time: neither the answer's delay nor its order tells which was close.
        matches = [hmac.compare_digest(given, token) for _, tokens in self._read.values() for token in tokens]
        return any(matches)

    def _refresh(self) -> None:
        with self._lock:
            now = self._clock()
            if now - self._checked < CHECK_SECONDS:
                return
            self._checked = now
            for path in self._files:
                try:
                    if _stamp(path) != self._read[path][0]:
                        self._read[path] = self._read_file(path)
                        logger.info("tokens read again from %s", path)
                except (OSError, InputError) as error:
                    logger.warning("tokens of %s stay as they were: %s", path, error)

    @staticmethod
    def _read_file(path: Path) -> tuple[Stamp, tuple[bytes, ...]]:
        try:
            stamp = _stamp(path)
            tokens = tuple(line.strip() for line in path.read_bytes().splitlines() if line.strip())
        except OSError as error:
            raise InputError(f"token file {path} cannot be read ({error.strerror}): name a readable file") from error
        if not tokens:
            raise InputError(f"token file {path} holds no token: write one token per line")
        return stamp, tokens


def _stamp(path: Path) -> Stamp:
    found = path.stat()  # follows the symbolic link that Kubernetes swaps when a secret changes
    return found.st_mtime_ns, found.st_size, found.st_ino


class Authentication:
    """ASGI: no token, no answer, but for the open paths."""

    def __init__(
        self, app: ASGIApp, tokens: BearerTokens, *, metrics_open: bool, answer: ErrorAnswer = error_response
    ) -> None:
        self._app, self._tokens, self._answer = app, tokens, answer
        self._open = OPEN_PATHS | ({"/metrics"} if metrics_open else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or answer 401."""
        if scope["type"] == "http" and scope["path"] not in self._open:
            given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
            if not self._tokens.accepts(given):
                message = (
                    "the token is not valid: ask for the current one"
                    if given
                    else "a token is needed: send Authorization: Bearer TOKEN"
                )
                challenge = 'Bearer realm="forecast-scheduler"' + (', error="invalid_token"' if given else "")
                response = self._answer(401, message, {"WWW-Authenticate": challenge, "Connection": "close"})
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


# The page's files come from us and it runs nothing inline; nobody may frame it.
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


class SecurityHeaders:
    """ASGI: adds the headers above; data is not cached unless a route says otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add headers to the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ())) + _HEADERS
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_with_headers)
