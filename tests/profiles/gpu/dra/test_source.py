"""Claims are read anew when somebody comes to lead, and nobody waits for those that cannot be read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from kubernetes.client import ApiClient, Configuration

from kube.client.kubernetes_source import source_of
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dra_subscriptions import dra_subscriptions, read_claims_again
from testing.placement.views import node_named, view_of
from testing.waiting import eventually
from tests.profiles.gpu.dra.manifests import Manifest, claim


class ApiServer:
    """Lists claims as they are, and has a watch wait for ever: one that lags.

    status : of lists of claims
    """

    def __init__(self) -> None:
        self.claims: list[Manifest] = []
        self.status = 200
        self.is_over = threading.Event()
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                has_claims = "/resourceclaims" in self.path
                if "watch=" in self.path:
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    world.is_over.wait(20)
                    self.close_connection = True
                    return
                self.send_response(world.status if has_claims else 200)
                items = world.claims if has_claims else []
                kind = "ResourceClaimList" if has_claims else "List"
                listed = {"kind": kind, "metadata": {"resourceVersion": "1"}, "items": items}
                body = msgspec.json.encode(listed)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.table = DraTable(view_of([node_named("a")]).state, threading.RLock)
        api = ApiClient(Configuration(host=f"http://127.0.0.1:{self.http.server_port}"))
        self.source = source_of(api, dra_subscriptions(self.table))

    def read_again(self) -> Callable[[], bool]:
        return read_claims_again(self.source)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.is_over.set()
    made.source.stop()
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def test_what_a_predecessor_allocated_is_known_before_anything_is_decided(server: ApiServer) -> None:
    server.source.start()
    assert server.source.wait_synced(10)
    server.claims.append(claim("c"))
    assert list(server.table.all_claims()) == []
    is_done = server.read_again()
    assert eventually(is_done)
    assert [one.name for one in server.table.all_claims()] == ["c"]
