"""What a client without a token can send to a service to wear it out. Bounded in count and time; benchmarks/attacks.py
measures what becomes of the service meanwhile.

Each attack is a coroutine of a Target and seconds. It ends by itself, and errors of its connections are the service's
defence, not its own. `attack` runs one in a process of its own:
python -m testing.processes.attacks NAME SECONDS TARGET.
"""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_ERRORS: Final = (OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError)
_PIPELINED: Final = 40
_TRUSTING: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TRUSTING.check_hostname, _TRUSTING.verify_mode = False, ssl.CERT_NONE


@dataclass(frozen=True, slots=True)
class Target:
    """post: a path that takes bodies, of body_bytes at most; get: one with a large answer; frame: body around a pod."""

    host: str
    port: int
    post: str
    get: str
    body_bytes: int
    tls: bool = False
    frame: str = '{"pod":%s}'

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Trusts any certificate."""
        return await asyncio.open_connection(self.host, self.port, ssl=_TRUSTING if self.tls else None)

    def head(self, length: int) -> bytes:
        """Of a POST with a body of this length."""
        lines = f"POST {self.post} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
        return f"{lines}Content-Length: {length}\r\n\r\n".encode()

    def asking(self, path: str = "") -> bytes:
        """A GET."""
        return f"GET {path or self.get} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Attack = Callable[[Target, float], Coroutine[Any, Any, None]]


async def _each(target: Target, count: int, seconds: float, talk: Talk, *, again: bool = False) -> None:
    """So many connections at once, each with this talk; again: a new one after each until the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def one() -> None:
        while True:
            writer = None
            with suppress(*_ERRORS):
                async with asyncio.timeout_at(end):
                    reader, writer = await target.connect()
                    await talk(reader, writer)
            if writer is not None:
                writer.transport.abort()
            if not again or loop.time() >= end:
                return
            await asyncio.sleep(0.02)

    await asyncio.gather(*(one() for _ in range(count)))


async def _stopped(target: Target, count: int, seconds: float) -> None:
    """Bodies that stop before their last byte."""
    body = b" " * (target.body_bytes - 1)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.head(target.body_bytes))
        for begin in range(0, len(body), 65_536):
            writer.write(body[begin : begin + 65_536])
            await writer.drain()
        await reader.read()

    await _each(target, count, seconds, talk)


async def stopped_64(target: Target, seconds: float) -> None:
    """64 bodies that stop before their end."""
    await _stopped(target, 64, seconds)


async def stopped_200(target: Target, seconds: float) -> None:
    """200 bodies that stop before their end."""
    await _stopped(target, 200, seconds)


async def _answered(reader: asyncio.StreamReader) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def large_60(target: Target, seconds: float) -> None:
    """60 whole bodies of the largest size at once, again and again: pods of many containers."""
    await _whole(target, 60, seconds, '{"name":"c","resources":{"requests":{"cpu":"1m"}}}', target.body_bytes)


async def values_60(target: Target, seconds: float) -> None:
    """60 bodies of 250 KiB at once, again and again: pods of 85,000 containers without fields."""
    await _whole(target, 60, seconds, "{}", 250 * 1024)


async def _whole(target: Target, count: int, seconds: float, container: str, size: int) -> None:
    pod = '{"metadata":{"name":"a","namespace":"default"},"spec":{"containers":[%s]}}'
    many = (size - len(pod) - len(target.frame)) // (len(container) + 1)
    body = (target.frame % (pod % ",".join([container] * many))).encode()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.head(len(body)) + body)
        await writer.drain()
        await _answered(reader)

    await _each(target, count, seconds, talk, again=True)


async def pipelined(target: Target, seconds: float) -> None:
    """200 connections with 40 pipelined GETs each, cut before the answers come, again and again."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.asking("/openapi.json") * (_PIPELINED // 2))
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.write(target.asking() * (_PIPELINED // 2))
        await writer.drain()

    await _each(target, 200, seconds, talk, again=True)


async def deep(target: Target, seconds: float) -> None:
    """Deeply nested JSON."""
    n = min(target.body_bytes, 2**20) // 8
    bodies = (b"[" * n * 8, b'{"pod":' * n, b'{"pod":{"spec":' + b"[" * n + b"]" * n + b"}}")

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for body in bodies:
            writer.write(target.head(len(body)) + body)
            await writer.drain()
            await _answered(reader)

    await _each(target, 20, seconds, talk, again=True)


async def unread(target: Target, seconds: float) -> None:
    """100 connections that ask for the largest answer 30 times and read nothing."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(target.asking() * 30)
        await writer.drain()
        await asyncio.sleep(seconds)

    await _each(target, 100, seconds, talk)


async def many_headers(target: Target, seconds: float) -> None:
    """100 connections with very many short headers that do not end; another comes for each that is closed."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.asking()[:-2])
        for _ in range(20):
            writer.write(b"a:\r\n" * 6000)
            await writer.drain()
        await reader.read()

    await _each(target, 100, seconds, talk, again=True)


async def short_chunks(target: Target, seconds: float) -> None:
    """30 connections with bodies in chunks of one byte; another comes for each that is closed."""
    length = b"Content-Length: 0"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.head(0).replace(length, b"Transfer-Encoding: chunked"))
        for _ in range(100):
            writer.write(b"1\r\n \r\n" * 10_000)
            await writer.drain()
        await reader.read()

    await _each(target, 30, seconds, talk, again=True)


async def full_buffers(target: Target, seconds: float) -> None:
    """800 connections that send 600 KB at once and stay open."""
    body = b" " * 600_000

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(target.head(len(body)) + body)
        await writer.drain()
        await _answered(reader)
        await asyncio.sleep(seconds)

    await _each(target, 800, seconds, talk)


async def slow_headers(target: Target, seconds: float) -> None:
    """300 connections that send a header byte by byte."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in target.asking() * 10:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.2)

    await _each(target, 300, seconds, talk, again=True)


async def connections(target: Target, seconds: float) -> None:
    """1,200 connections that stay open and ask nothing; another comes for each that is closed."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    await _each(target, 1200, seconds, talk, again=True)


async def handshakes(target: Target, seconds: float) -> None:
    """4,000 connections that stay open and say nothing, with TLS not even a greeting."""

    async def one() -> None:
        writer = None
        with suppress(*_ERRORS):
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(target.host, target.port)
                await reader.read()
        if writer is not None:
            writer.transport.abort()

    await asyncio.gather(*(one() for _ in range(4000)))


async def garbage(target: Target, seconds: float) -> None:
    """50 connections at a time with bytes that are neither HTTP nor TLS, invalid headers, upgrades and resets."""
    found = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage",
        b"\x00" * 4000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nBad Name: \x01\r\n\r\n",
        b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\n\r\n",
        b"GET /%ff%0aERROR%20a:%20made%20up HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )

    plain = Target(target.host, target.port, target.post, target.get, target.body_bytes)

    def talk(data: bytes) -> Talk:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(data)
            await writer.drain()
            async with asyncio.timeout(0.2):
                await reader.read(10)

        return one

    async with asyncio.TaskGroup() as tasks:
        for data in found:
            for kind in {target, plain}:
                tasks.create_task(_each(kind, 7, seconds, talk(data), again=True))


async def mixed(target: Target, seconds: float) -> None:
    """Most of the above at once."""
    async with asyncio.TaskGroup() as tasks:
        for attack in (stopped_64, pipelined, deep, unread, slow_headers, garbage):
            tasks.create_task(attack(target, seconds))


ATTACKS: Final[dict[str, Attack]] = {
    attack.__name__: attack
    for attack in (
        stopped_64, stopped_200, large_60, values_60, full_buffers, short_chunks, many_headers, slow_headers, pipelined,
        deep, unread, connections, handshakes, garbage, mixed,
    )
}  # fmt: skip


def attack(name: str, target: Target, seconds: float) -> None:
    """Attack in a process of its own, which shares no interpreter with those who watch, and wait for its end."""
    command = [sys.executable, "-m", "testing.processes.attacks", name, str(seconds), json.dumps(asdict(target))]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=seconds + 60)


def main() -> None:
    """The process of `attack`."""
    name, seconds, target = sys.argv[1:]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    asyncio.run(ATTACKS[name](Target(**json.loads(target)), float(seconds)))


if __name__ == "__main__":
    main()
