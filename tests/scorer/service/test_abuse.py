"""Bytes that no client should send, to a server in a process of its own: it answers with an error or hangs up, lives on
and never finds fault with itself (500)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from tests.serving.broken_bodies import BODY
from tests.serving.served import process

REQUEST = b"POST /v1/scores HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
REQUEST_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
JSON_TYPE = {"Content-Type": "application/json"}
LIMIT = 2**20  # of serve_fake_scorer


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with process() as (_, url):
        yield url


def _send(url: str, data: bytes, *, half_close: bool = False) -> bytes:
    """What the server says to these bytes, as far as it says anything before it hangs up or falls silent."""
    parsed = httpx.URL(url)
    assert parsed.port is not None
    answer = b""
    with socket.create_connection((parsed.host, parsed.port), timeout=15) as connection:
        try:
            connection.sendall(data)
            if half_close:
                with suppress(OSError):  # it has hung up already
                    connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                answer += part
        except ConnectionError:
            pass  # it hung up before it had read everything
    return answer


def _alive(url: str) -> bool:
    scored = httpx.post(f"{url}/v1/scores", content=BODY, headers=JSON_TYPE).json()["scores"]
    return set(scored) == {"node-01", "node-02"}


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (REQUEST % (LIMIT + 1, b""), b"413"),
        (REQUEST % (10**17, b"x"), b"413"),
        (b"POST /v1/scores HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         + (b"10000\r\n" + b" " * 65_536 + b"\r\n") * 17, b"413"),
        (b"POST /v1/scores HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 300_000 + b"\r\n\r\n", b""),
        (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        (b"GET /v1/nodes/%ff%fe%00/forecast HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /v1/heat-map?resource=%ff%00&top=5 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"422"),
        (b"GET /v1/heat-map?top=99999999999999999999999 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"422"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),  # a TLS hello
        (b"\x00" * 100_000, b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b""),
        (REQUEST % (len(BODY), BODY[:20]), b""),  # hangs up in the middle of the body
    ],
)  # fmt: skip
def test_what_no_client_should_send_is_survived(url: str, data: bytes, status: bytes) -> None:
    answer = _send(url, data, half_close=not status)
    assert status in answer.split(b"\r\n", 1)[0]
    assert b" 500 " not in answer.split(b"\r\n", 1)[0]
    assert _alive(url)


def test_requests_in_one_packet_are_all_answered(url: str) -> None:
    answer = _send(url, REQUEST_HEALTH * 4 + REQUEST_HEALTH[:-2] + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 5
