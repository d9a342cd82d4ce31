"""Requests to the API server, hundreds at a time, from one thread.

aiohttp on uvloop's event loop: measured against a real API server, 128 in flight, a binding takes 180 us of CPU (290
with the handshakes of a burst of a thousand), against 570 of urllib3 in 64 threads, 830 of kubernetes.aio and 7,000 of
httpx. A bare parser on a socket would take 80, and be one more HTTP client to look after.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

import aiohttp
from kubernetes import client
from yarl import URL

from kube.client.api_answer import LARGEST_ANSWER, ApiAnswer, answered, not_sent, unanswered
from kube.client.kubernetes_client import authorization
from kube.session.connection import GOODBYE_SECONDS, connection_of, loop_factory, session_of
from kube.session.session_calls import SessionOver

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TOKEN_SECONDS: Final = 10.0
"""How often the token is read again: one that is rotated is valid for minutes more."""
_UNAUTHORIZED: Final = 401
_MOST_TIMEOUTS: Final = 256
_START_SECONDS: Final = 60.0


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body; raises aiohttp.ClientPayloadError beyond LARGEST_ANSWER. It is as sent: nothing is decompressed."""
    parts: list[bytes] = []
    size = 0
    while part := await response.content.readany():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
        parts.append(part)
    return b"".join(parts)


class ApiSession:
    """An event loop in a thread of its own, with connections that are kept open.

    api         : who asks and where, see kube.client.kubernetes_client.api_client
    connections : open at once
    may_write   : asked before every request but GET; the lease says so

    Raises InputError where certificates cannot be read.
    """

    def __init__(
        self, api: client.ApiClient, *, connections: int = 192, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._api, self._connections, self._may_write = api, connections, may_write
        self._connection = connection_of(api.configuration)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http: aiohttp.ClientSession | None = None
        self._headers: dict[str, dict[str, str]] = {}
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._given_up_at = float("-inf")  # the last connection, in the loop's time
        self._stale: asyncio.Event | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="api-session", daemon=True)
        self._running = threading.Event()
        self._lock = threading.Lock()  # nothing is handed to a loop that has ended

    def start(self) -> None:
        """Begin; requests may be made once it returns. Once only."""
        self._set_headers(authorization(self._api))
        self._thread.start()
        if not self._running.wait(_START_SECONDS):
            raise SessionOver(f"the session with the API server did not begin within {_START_SECONDS:g} s")
        if self._loop is None:
            raise SessionOver("the session with the API server ended as it began: the log says why")

    def stop(self, timeout: float = 5.0) -> None:
        """Cancel what is under way, close all connections and end. May be called twice, and without a start."""
        with self._lock:
            loop, stopping = self._loop, self._stopping
            self._loop = None
            if loop is not None and stopping is not None:
                loop.call_soon_threadsafe(stopping.set)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop. For any thread. Raises SessionOver."""
        with self._lock:
            if self._loop is not None:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise SessionOver("the session with the API server is not running")

    def call_soon(self, act: Callable[..., object], *arguments: object) -> None:
        """Call something quick in the loop. For any thread. Raises SessionOver."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act, *arguments)
                return
        raise SessionOver("the session with the API server is not running")

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        content_type: str = "application/json",
        seconds: float,
    ) -> ApiAnswer:
        """Send one request and return its whole answer, whatever the status; never raises for a failure.

        path : with its query, escaped as it is to be sent; seconds: timeout. An answer that is too large counts as none

        No retries and no redirects: the writer must know what became of the request.
        """
        http = self._http
        if http is None:
            return not_sent("the session with the API server is not running")
        if method != "GET" and not self._may_write():
            return not_sent("this replica does not lead (any more) and may not write")
        try:
            async with http.request(
                method,
                URL(self._connection.host + path, encoded=True),
                data=body,
                headers=self._headers_of(content_type if body is not None else ""),
                timeout=self._timeout(seconds),
                **self._connection.arguments,
            ) as response:
                content, status, headers = await _whole(response), response.status, response.headers
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                self._given_up_at = self._loop_time()
            return unanswered(error)
        if status == _UNAUTHORIZED and self._stale is not None:
            self._stale.set()
        return answered(status, content, headers.get("Retry-After", "") if status >= 300 else "")

    # Inside

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        """Nearly all requests have one of a few: an object less for each of them."""
        timeout = self._timeouts.get(seconds)
        if timeout is None:
            if len(self._timeouts) >= _MOST_TIMEOUTS:
                self._timeouts.clear()
            timeout = self._timeouts[seconds] = aiohttp.ClientTimeout(total=seconds)
        return timeout

    def _headers_of(self, content_type: str) -> dict[str, str]:
        """Made once per token; '' = without a body."""
        headers = self._headers.get(content_type)
        if headers is None:
            headers = self._headers[content_type] = self._headers[""] | {"Content-Type": content_type}
        return headers

    def _set_headers(self, who: dict[str, str]) -> None:
        self._headers = {"": {"Accept": "application/json", "User-Agent": "forecast-scheduler"} | who}

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            try:
                runner.run(self._serve())
            finally:
                with self._lock:
                    self._loop = None
                self._running.set()

    async def _serve(self) -> None:
        self._stale, self._stopping = asyncio.Event(), asyncio.Event()
        stopping = self._stopping
        self._http = session_of(self._connection, connections=self._connections)
        try:
            renewing = asyncio.ensure_future(self._renew_token(self._stale))
            with self._lock:
                self._loop = asyncio.get_running_loop()
            self._running.set()
            await stopping.wait()
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            ours = asyncio.current_task()
            others = [task for task in asyncio.all_tasks() if task is not ours]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            if others:
                self._given_up_at = self._loop_time()
        finally:
            http, self._http = self._http, None
            if http is not None:
                await http.close()
            # Connections that were given up have that long to end: none is left to the garbage collector.
            await asyncio.sleep(max(0.0, self._given_up_at + 2 * GOODBYE_SECONDS - self._loop_time()))

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time()

    async def _renew_token(self, stale: asyncio.Event) -> None:
        """In a thread: what a kubeconfig names may be a command that takes seconds."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(stale.wait(), _TOKEN_SECONDS)
            stale.clear()
            try:
                self._set_headers(await asyncio.to_thread(authorization, self._api))
            except Exception as error:
                logger.warning("the token of the API server cannot be read again", extra={"why": str(error)[:300]})
            await asyncio.sleep(1.0)  # a token that stays refused is not read a thousand times a second
