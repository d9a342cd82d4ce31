"""Who may ask: bearer tokens from files, or those that the API server vouches for, and the paths that need no token.
Besides, the headers that browsers heed.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from base.errors import InputError
from serving.json_answers import ErrorAnswer, error_response
from serving.kubernetes_access import AccessVerdict, KubernetesAccess

PAGE_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/heatmap.js": ("heatmap.js", "text/javascript; charset=utf-8"),
    "/rebalance.js": ("rebalance.js", "text/javascript; charset=utf-8"),
    "/format.js": ("format.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/report-view": ("report-view.html", "text/html; charset=utf-8"),
}
"""Path -> file and media type."""

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", *PAGE_FILES})
"""Kubernetes probes carry no token."""

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0

PROXIED_AUTHORIZATION: Final = "Forecast-Scheduler-Authorization"
"""Header that counts if there is no Authorization: the API server takes that out of what it passes on to a Service."""

Stamp = tuple[int, int, int]


class BearerTokens:
    """The tokens that are valid now. Raises InputError if a file cannot be read or holds none at the start.

    A file that later vanishes or is emptied keeps its old tokens, with a warning: a half-written secret must neither
    lock all clients out nor let all in.
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
        given = bearer_token(authorization)
        if given is None:
            return False
        # Every token is compared, in constant time: neither the delay of an answer nor its order shows which was close.
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


def bearer_token(authorization: bytes | None) -> bytes | None:
    """What follows Bearer in an Authorization header; None = it says something else."""
    scheme, _, given = (authorization or b"").partition(b" ")
    return given.strip() if scheme.lower() == b"bearer" else None


def add_authentication(
    app: FastAPI,
    token_files: Sequence[Path],
    access: KubernetesAccess | None,
    *,
    metrics_open: bool,
    answer: ErrorAnswer = error_response,
) -> bool:
    """Ask for tokens where there is anything to hold them against; whether that is so. Raises InputError."""
    tokens = BearerTokens(token_files) if token_files else None
    if tokens is None and access is None:
        return False
    app.add_middleware(Authentication, tokens=tokens, access=access, metrics_open=metrics_open, answer=answer)
    return True


class Authentication:
    """ASGI: no token, no answer, but for the open paths. A token of the files may everything, others what RBAC says."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: BearerTokens | None,
        access: KubernetesAccess | None = None,
        *,
        metrics_open: bool,
        answer: ErrorAnswer = error_response,
    ) -> None:
        self._app, self._tokens, self._access, self._answer = app, tokens, access, answer
        self._open = OPEN_PATHS | ({"/metrics"} if metrics_open else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 401, 403 or 503."""
        if scope["type"] == "http" and scope["path"] not in self._open:
            refusal = await self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        sent = dict(reversed(scope["headers"]))  # of several of one name the first
        given = sent.get(b"authorization") or sent.get(PROXIED_AUTHORIZATION.lower().encode())
        if not given:
            return self._unauthorized("a token is needed: send Authorization: Bearer TOKEN", "")
        if self._tokens is not None and self._tokens.accepts(given):
            return None
        verdict, verb, path = AccessVerdict.NOBODY, scope["method"].lower(), scope["path"]
        if self._access is not None:
            address = scope["client"][0] if scope.get("client") else ""
            verdict = await self._access.verdict(bearer_token(given) or b"", verb, path, address)
        if verdict is AccessVerdict.ALLOWED:
            return None
        hang_up = {"Connection": "close"}
        if verdict is AccessVerdict.FORBIDDEN:
            message = (
                f"this token's user may not {verb} {path[:200]}: grant it by a ClusterRole with nonResourceURLs "
                "(docs/operate/security.md)"
            )
            return self._answer(403, message, hang_up)
        if verdict is AccessVerdict.UNKNOWN:
            message = "the API server does not say whose token this is: ask again after Retry-After seconds"
            return self._answer(503, message, hang_up)
        if verdict is AccessVerdict.BUSY:
            message = "too many tokens wait to be looked up: ask again after Retry-After seconds"
            return self._answer(503, message, hang_up)
        return self._unauthorized("the token is not valid: ask for the current one", ', error="invalid_token"')

    def _unauthorized(self, message: str, error: str) -> Response:
        challenge = f'Bearer realm="forecast-scheduler"{error}'
        return self._answer(401, message, {"WWW-Authenticate": challenge, "Connection": "close"})


# The page's files come from us and it runs nothing inline; no other page may frame it.
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
                headers = list(message.get("headers", ()))
                given = {name.lower() for name, _ in headers}
                headers += [header for header in _HEADERS if header[0] not in given]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_with_headers)
