"""The protocol over a transport that only notes what it is told: what is read, and who is hung up on."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable
from typing import Any, Self

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from serving.connections import limited_protocol
from tests.serving.event_loop import in_loop

ASK = b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"."


class Transport(asyncio.Transport):
    """Of a client that reads so many bytes of its answers between two looks at what is left."""

    def __init__(self) -> None:
        super().__init__()
        self.unread, self.read_each_time, self.looks = 100_000, 0, 0
        self.reads, self.aborted, self.written = True, False, b""
        self.on_answer: Callable[[], None] = lambda: None

    def write(self, data: Any) -> None:
        self.written += data
        if data == ANSWER:
            self.on_answer()

    def get_write_buffer_size(self) -> int:
        self.looks += 1
        self.unread -= self.read_each_time
        return self.unread

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.aborted

    def close(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True


class Server:
    """An application that answers a request when it is told to. Hangs up on everybody in the end."""

    def __init__(self, unread_seconds: float = 60.0, connections: int = 10) -> None:
        self.answer, self.asked = asyncio.Semaphore(0), 0
        self._kind = limited_protocol(header_seconds=60, unread_seconds=unread_seconds, connections=connections)
        self._config = uvicorn.Config(self._app, interface="asgi3", lifespan="off", log_config=None)
        self._state = ServerState()

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        self.asked += 1
        await self.answer.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": ANSWER})

    def connect(self) -> tuple[HttpToolsProtocol, Transport]:
        protocol, transport = self._kind(self._config, self._state, {}), Transport()
        protocol.connection_made(transport)
        return protocol, transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for protocol in list(self._state.connections):
            protocol.connection_lost(None)


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@in_loop
async def test_nothing_is_read_while_a_request_waits_for_the_one_before() -> None:
    async with Server() as server:
        protocol, transport = server.connect()
        protocol.data_received(ASK * 3)
        for asked in (1, 2):
            await _settle()
            assert server.asked == asked and not transport.reads
            server.answer.release()
        await _settle()
        assert server.asked == 3 and transport.reads  # the last one may have a body
        server.answer.release()
        await _settle()
        assert transport.written.count(b"200 OK") == 3 and not transport.aborted


@in_loop
async def test_whoever_hangs_up_is_answered_nothing_and_costs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with Server() as server:
        connected = [server.connect() for _ in range(20)]
        for protocol, _ in connected:
            protocol.data_received(ASK * 5)
        await _settle()
        for protocol, _ in connected:
            protocol.connection_lost(None)
        for _ in range(100):
            server.answer.release()
        await _settle()
        assert server.asked == 20 and not any(transport.written for _, transport in connected)
    assert [record.getMessage() for record in caplog.records] == ["a client was gone before its answer"]


@pytest.mark.parametrize("ahead", [True, False], ids=["sent ahead", "sent later"])
@in_loop
async def test_no_request_begins_while_the_answers_before_it_are_unread(ahead: bool) -> None:
    async with Server() as server:
        protocol, transport = server.connect()
        transport.on_answer = protocol.pause_writing
        protocol.data_received(ASK * (3 if ahead else 1))
        server.answer.release()
        await _settle()
        if not ahead:
            protocol.data_received(ASK * 2)
            await _settle()
        assert server.asked == 1 and not transport.reads
        for asked in (2, 3):
            protocol.resume_writing()
            await _settle()
            assert server.asked == asked
            server.answer.release()
            await _settle()
        assert transport.written.count(b"200 OK") == 3 and not transport.aborted


@in_loop
async def test_who_reads_no_answer_is_hung_up_on_and_what_waits_behind_ends() -> None:
    async with Server(unread_seconds=0.01) as server:
        protocol, transport = server.connect()
        transport.on_answer = protocol.pause_writing
        protocol.data_received(ASK * 2)
        server.answer.release()
        await asyncio.sleep(0.1)
        assert transport.aborted
        protocol.connection_lost(None)
        protocol.resume_writing()
        await _settle()
        assert server.asked == 1
    async with Server(unread_seconds=0.01) as server:
        protocol, transport = server.connect()
        protocol.pause_writing()
        while not transport.aborted:
            await asyncio.sleep(0.01)


@in_loop
async def test_who_sends_many_headers_is_hung_up_on_and_who_reads_slowly_is_not() -> None:
    async with Server(unread_seconds=0.01) as server:
        protocol, transport = server.connect()
        transport.read_each_time = 100
        protocol.pause_writing()
        while transport.looks < 10:
            await asyncio.sleep(0.01)
        protocol.resume_writing()
        transport.read_each_time = 0  # what is left may wait
        await asyncio.sleep(0.1)
        assert not transport.aborted
    async with Server() as server:
        protocol, transport = server.connect()
        protocol.data_received(b"GET /v1/nodes HTTP/1.1\r\n" + b"a:\r\n" * 60_000)
        assert transport.aborted and len(protocol.headers) < 1000


@in_loop
async def test_headers_of_requests_that_wait_count_together() -> None:
    async with Server() as server:
        long = ASK[:-2] + b"a: " + b"x" * 20_000 + b"\r\n\r\n"
        for waiting, hung_up in ((2, False), (3, True)):
            protocol, transport = server.connect()
            protocol.data_received(long * waiting)
            assert transport.aborted == hung_up
            if not hung_up:
                for _ in range(5):  # one after another is as many as there are answers
                    server.answer.release()
                    server.answer.release()
                    await _settle()
                    protocol.data_received(long * 2)
                assert not transport.aborted


@in_loop
async def test_what_nobody_asked_for_of_a_body_is_dropped_with_the_answer() -> None:
    async with Server() as server:
        protocol, _ = server.connect()
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        await _settle()
        server.asked = 0
        cycle = protocol.cycle
        protocol.data_received(b"x" * 50_000)
        await _settle()
        protocol.data_received(b"x" * 50_000)
        server.answer.release()
        await _settle()
        assert not cycle.body


@in_loop
async def test_where_too_much_is_unread_the_one_that_stopped_first_goes() -> None:
    async with Server() as server:
        connected = [server.connect() for _ in range(5)]
        for protocol, transport in connected:
            transport.unread = 25 << 20  # two of them are less than may wait, three are more
            protocol.pause_writing()
        assert [transport.aborted for _, transport in connected] == [True, True, True, False, False]
        connected[3][0].resume_writing()
        another, last = server.connect()
        last.unread = 30 << 20
        another.pause_writing()
        assert not last.aborted and not connected[4][1].aborted


@in_loop
async def test_who_reads_no_answer_makes_room_like_the_idle() -> None:
    async with Server(connections=2) as server:
        (unread, left), (working, kept) = server.connect(), server.connect()
        for protocol in (unread, working):
            protocol.data_received(ASK)
        await _settle()
        unread.pause_writing()
        server.connect()
        assert left.aborted and not kept.aborted


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["closed", "reset"])
@pytest.mark.parametrize("requests", [1, 3], ids=["answered", "waiting"])
@pytest.mark.usefixtures("without_garbage_collection")
@in_loop
async def test_nothing_of_a_connection_outlives_it(requests: int, error: Exception | None) -> None:
    async with Server() as server:
        protocol, _ = server.connect()
        protocol.data_received(ASK * requests)
        server.answer.release()
        await _settle()
        protocol.connection_lost(error)
        server.answer.release()
        await _settle()
        left = weakref.ref(protocol)
        del protocol
        assert left() is None
