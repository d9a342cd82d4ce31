"""How it ends and begins again: nothing asked is left unanswered, nothing remembered is missed, replicas agree."""

from __future__ import annotations

import json
import signal
import socket
import time

import httpx
import pytest

from testing.processes.scenery import Scenery
from testing.processes.scorer_process import settings_of
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.processes.conftest import Started


def _half_sent(url: str, path: str, body: bytes) -> tuple[socket.socket, bytes]:
    """A connection on which half of a request is under way, and the other half."""
    parsed = httpx.URL(url)
    assert parsed.port is not None
    connection = socket.create_connection((parsed.host, parsed.port), timeout=20)
    header = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    header += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(header.encode() + body[: len(body) // 2])
    return connection, body[len(body) // 2 :]


def _answer(connection: socket.socket) -> bytes:
    answer = b""
    while part := connection.recv(65_536):
        answer += part
    connection.close()
    return answer


def test_requests_in_flight_are_answered_before_it_ends(start: Started, cluster: Scenery) -> None:
    scorer = start(settings=settings_of(serving={"drain": "1s"}), forked=False)
    assert scorer.process is not None
    body = json.dumps({"pod": cluster.pod("any")}).encode()
    started = [_half_sent(scorer.url, path, body) for path in ["/v1/scores", "/v1/explain"] * 10]
    scorer.process.send_signal(signal.SIGTERM)
    assert eventually(lambda: scorer.http.get("/readyz").status_code == 503, 5)
    assert scorer.post("/v1/scores", {"pod": cluster.pod("any")})["scores"]  # until load balancers have noticed
    time.sleep(1.2)  # no new connections any more
    for connection, rest in started:
        connection.sendall(rest)
    answers = [_answer(connection) for connection, _ in started]
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers), answers
    assert scorer.process.wait(20) == 0
    assert scorer.complaints == []


def test_it_ends_although_everything_around_it_hangs(
    start: Started, plane: ControlPlane, prometheus: PrometheusServer
) -> None:
    with TcpProxy(plane.api_server.port) as api, TcpProxy(prometheus.port) as metrics:
        kubeconfig = plane.write_kubeconfig("admin", plane.token, url=api.url)
        scorer = start("--prometheus", metrics.url.replace("https", "http"), kubeconfig=kubeconfig, forked=False)
        assert eventually(lambda: scorer.get("/v1/status")["level"] == 0)
        api.freeze()
        metrics.freeze()
        assert eventually(lambda: scorer.get("/v1/status")["level"] == 1)
        assert scorer.terminate(seconds=20) == 0  # the kubelet kills after 30


def test_pods_that_no_metric_has_seen_are_charged_by_their_profile_after_a_restart_too(
    start: Started, cluster: Scenery, writer: ClusterWriter, prometheus: PrometheusServer
) -> None:
    """When a scorer starts it knows such pods before it has a model."""
    made = writer.create(cluster.pod("unseen", node=cluster.nodes[4], cpu="3"))
    try:
        scorer = start("--prometheus", prometheus.url)
        reference = {"namespace": made["metadata"]["namespace"], "name": "unseen"}
        explained = scorer.post("/v1/explain", {"pod": reference})
        assert explained["virtual_request_source"] == "profile of the service at this hour"
        body = scorer.get("/v1/virtual-available")
        charged = dict(zip(body["resources"], body["charged"][body["nodes"].index(cluster.nodes[4])], strict=True))
        assert charged == pytest.approx(explained["virtual_request"], rel=1e-5)
        assert charged["cpu"] != pytest.approx(3)
    finally:
        writer.delete(made)
