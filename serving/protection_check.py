"""Whether the limits of connections.py really hold with the uvicorn that is installed.

uvicorn documents no means for them, so connections.py overrides public methods of its protocol. A uvicorn that does not
call these would serve all the same, without limits. So a service tries them at its start, on connections
that exist in memory only, and does not start where one of them fails.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from base.errors import InputError
from serving.connections import MOST_BESIDE_BODY, limited_protocol

_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
_MANY: Final = 50
"""Requests ahead, more than any client may send."""
_LONG: Final = 60.0


class _Recorded(asyncio.Transport):
    """A client that only listens; ended: the server hung up."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True

    def write(self, data: Any) -> None:
        """What is written goes nowhere: this client only listens."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer that could have limits."""

    def get_write_buffer_size(self) -> int:
        return 1

    def pause_reading(self) -> None:
        """What this client sends is put into the protocol directly."""

    def resume_reading(self) -> None:
        """What this client sends is put into the protocol directly."""


class _Tried:
    """Connections of one server, which never answers unless `app` does."""

    def __init__(
        self,
        *,
        app: ASGIApp | None = None,
        header_seconds: float = _LONG,
        unread_seconds: float = _LONG,
        connections: int = _MANY,
    ) -> None:
        kind = limited_protocol(header_seconds, unread_seconds, connections)
        self._app, self.begun = app or _never, 0
        self.config = uvicorn.Config(
            self._counted, http=kind, ws="none", lifespan="off", interface="asgi3", log_config=None, access_log=False
        )
        self.config.load()
        self.kind, self.state = kind, ServerState()
        self._open: list[HttpToolsProtocol] = []

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        await self._app(scope, receive, send)

    def connect(self) -> tuple[HttpToolsProtocol, _Recorded]:
        protocol, transport = self.kind(config=self.config, server_state=self.state, app_state={}), _Recorded()
        self._open.append(protocol)
        protocol.connection_made(transport)
        return protocol, transport

    async def end(self) -> None:
        for task in tuple(self.state.tasks):
            task.cancel()
        await asyncio.gather(*self.state.tasks, return_exceptions=True)
        for protocol in self._open:
            protocol.connection_lost(None)


@contextmanager
def _in_silence() -> Iterator[None]:
    """What the connections that this thread tries send is no news for the log."""
    log, here = logging.getLogger("uvicorn.error"), threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != here

    # Not `disabled`: services and probes begin at once, and each would put back what it found of the other.
    log.addFilter(is_of_others)
    try:
        yield
    finally:
        log.removeFilter(is_of_others)


async def check_protection() -> None:
    """To be called in an event loop, before anything is served. Raises InputError where a limit does not hold."""
    with _in_silence():
        await _check()


async def _check() -> None:
    for what, holds in _LIMITS.items():
        tried, failed = _Tried(**_SETTINGS.get(what, {})), ""
        try:
            if not await holds(tried):
                failed = "it is not kept"
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
        finally:
            try:
                await tried.end()
            except Exception as error:
                failed = failed or f"{type(error).__name__}: {error}"
        if failed:
            raise InputError(
                f"uvicorn {uvicorn.__version__} does not let this service limit {what} ({failed}), so that any client "
                "could keep it from serving others: install the version that pyproject.toml and constraints.txt name"
            )


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


async def _at_once(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _answered(tried: _Tried) -> bool:
    """One after the other, and then the connection is idle: a further one may take its place."""
    protocol, transport = tried.connect()
    protocol.data_received(_REQUEST * 3)
    while tried.state.tasks:
        await asyncio.gather(*tried.state.tasks)
    if transport.ended or tried.state.total_requests != 3:
        return False
    tried.connect()
    return transport.ended


async def _long_headers(tried: _Tried) -> bool:
    protocol, transport = tried.connect()
    protocol.data_received(b"GET / HTTP/1.1\r\nX: " + b"x" * (MOST_BESIDE_BODY + 1) + b"\r\n\r\n")
    return transport.ended and not tried.state.tasks


async def _requests_ahead(tried: _Tried) -> bool:
    protocol, transport = tried.connect()
    protocol.data_received(_REQUEST)
    kept = not transport.ended
    protocol.data_received(_REQUEST * _MANY)
    return kept and transport.ended and len(tried.state.tasks) == 1


async def _idle_connections(tried: _Tried) -> bool:
    _, first = tried.connect()
    _, second = tried.connect()
    return first.ended and not second.ended


async def _slow_headers(tried: _Tried) -> bool:
    protocol, transport = tried.connect()
    protocol.data_received(_REQUEST[:-2])
    await asyncio.sleep(0.01)
    return transport.ended


async def _unread_answers(tried: _Tried) -> bool:
    protocol, transport = tried.connect()
    protocol.pause_writing()
    await asyncio.sleep(0.01)
    return transport.ended


async def _behind_unread_answers(tried: _Tried) -> bool:
    """Such a request begins when the answers are read, so that it takes no place among those at work."""
    protocol, _ = tried.connect()
    protocol.pause_writing()
    protocol.data_received(_REQUEST)
    await asyncio.sleep(0.01)
    early = tried.begun
    protocol.resume_writing()
    await asyncio.sleep(0.01)
    return (early, tried.begun) == (0, 1)


_LIMITS: Final[dict[str, Callable[[_Tried], Any]]] = {
    "requests that follow one another": _answered,
    "the headers of a request": _long_headers,
    "requests sent ahead of the answers": _requests_ahead,
    "idle connections": _idle_connections,
    "how long a header may take": _slow_headers,
    "answers that are not read": _unread_answers,
    "requests behind answers that are not read": _behind_unread_answers,
}
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "requests that follow one another": {"app": _at_once, "connections": 1},
    "idle connections": {"connections": 1},
    "how long a header may take": {"header_seconds": 0.0},
    "answers that are not read": {"unread_seconds": 0.0},
}
