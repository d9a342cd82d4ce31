"""The HTTPS ports of played kubelets, which answer /metrics/resource; the API server's proxy of nodes reaches them.

client --> API server --TLS--> this machine's address, a port for each node
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.authority import Authority
from testing.servers.cluster_objects import Manifest
from testing.servers.proxied_service import own_address

_ADDRESS: Final = "ExternalIP"
"""The type that kube-apiserver tries last: for other addresses of a node, its options must pass over their types."""

Page = Callable[[str], str]
"""Name of a node -> what its kubelet says; "" = it answers with status 500."""


class ResourceKubelets:
    """Context manager. page may be replaced at any time.

    slow  : seconds before the answer, by node
    asked : requests by node
    """

    def __init__(self, directory: Path, nodes: Sequence[str], page: Page) -> None:
        self.page, self.address = page, own_address()
        self.ports: dict[str, int] = {}
        self.slow: dict[str, float] = {}
        self.asked: dict[str, int] = dict.fromkeys(nodes, 0)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(*Authority(directory, "kubelets").issue("kubelet"))
        self._loop = asyncio.new_event_loop()
        self._servers: dict[str, asyncio.Server] = {}
        self._clients: dict[str, dict[asyncio.Task[Any], asyncio.StreamWriter]] = {node: {} for node in nodes}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        for node in self.asked:
            self.start(node)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for node in list(self._servers):
            self.stop(node)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def start(self, node: str) -> None:
        """Listen, on the port of before if there was one."""
        self._servers[node] = asyncio.run_coroutine_threadsafe(self._listen(node), self._loop).result(10)
        self.ports[node] = self._servers[node].sockets[0].getsockname()[1]

    def stop(self, node: str) -> None:
        """Listen no more, and drop its connections."""
        asyncio.run_coroutine_threadsafe(self._end(node), self._loop).result(10)

    async def _listen(self, node: str) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._clients[node][task] = writer
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.asked[node] += 1
                    await asyncio.sleep(self.slow.get(node, 0.0))
                    is_known = head.split(b" ")[1] == b"/metrics/resource"
                    body = self.page(node).encode() if is_known else b""
                    status = b"200 OK" if body else b"500 Internal Server Error" if is_known else b"404 Not Found"
                    kind = b"text/plain; version=0.0.4; charset=utf-8"
                    lines = (b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body))
                    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                writer.transport.abort()
            finally:
                del self._clients[node][task]

        return await asyncio.start_server(serve, self.address, self.ports.get(node, 0), ssl=self._tls)

    async def _end(self, node: str) -> None:
        server = self._servers.pop(node)
        server.close()
        tasks = list(self._clients[node])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        await asyncio.sleep(0.05)  # transports say goodbye


def reachable(node: Manifest, kubelets: ResourceKubelets, *, only: bool = False) -> Manifest:
    """A Node with the way to its kubelet. only: it has no other address; else see `_ADDRESS`"""
    status = node["status"]
    status["addresses"] = [] if only else status["addresses"]
    status["addresses"].append({"type": _ADDRESS, "address": kubelets.address})
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": kubelets.ports[node["metadata"]["name"]]}}
    return node
