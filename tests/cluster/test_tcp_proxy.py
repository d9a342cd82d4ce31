"""The tests' own proxy does what tests rely on: with a lag everything arrives, in order and later."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from testing.servers.control_plane.tcp_proxy import TcpProxy

LAG_SECONDS = 0.4


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that says what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            while piece := client.recv(1 << 16):
                client.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    accepting.join()
    listener.close()
    for thread in threads:
        thread.join(10)


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), timeout=20)


def test_all_arrives_in_order_and_not_before_its_time(echo_port: int) -> None:
    said = bytes(range(256)) * 4000
    with TcpProxy(echo_port, lag_seconds=LAG_SECONDS) as proxy, closing(connect(proxy)) as client:
        began = time.monotonic()
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
        heard = bytearray()
        while piece := client.recv(1 << 16):
            assert time.monotonic() - began >= LAG_SECONDS
            heard += piece
    assert heard == said


def test_what_is_on_its_way_is_lost_with_a_cut(echo_port: int) -> None:
    with TcpProxy(echo_port, lag_seconds=LAG_SECONDS) as proxy, closing(connect(proxy)) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        client.sendall(b"b")
        proxy.cut()
        with suppress(ConnectionResetError):
            assert client.recv(10) == b""


def test_a_frozen_connection_says_nothing_and_a_new_one_does(echo_port: int) -> None:
    with TcpProxy(echo_port, lag_seconds=LAG_SECONDS) as proxy, closing(connect(proxy)) as frozen:
        frozen.sendall(b"a")
        assert frozen.recv(1) == b"a"
        frozen.sendall(b"b")
        proxy.freeze()
        frozen.settimeout(2 * LAG_SECONDS)
        with pytest.raises(TimeoutError):
            frozen.recv(1)
        with closing(connect(proxy)) as fresh:
            fresh.sendall(b"c")
            assert fresh.recv(1) == b"c"
