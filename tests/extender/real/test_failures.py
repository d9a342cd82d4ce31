"""Whatever the extender answers, kube-scheduler v1.36 goes on placing pods. (Where none answers any more:
tests/processes/test_extender_fails.py.)"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from extender.service.app import create_app
from extender.service.options import ServiceOptions
from kube.binding.binding import ApiServerBinder
from kube.client.kubernetes_client import api_client
from testing.servers.cluster_objects import ClusterWriter, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.extender.real.conftest import QUICK, placed, wait_until_placed
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.serving.served import served

VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 5}
IGNORABLE = VERBS | {"ignorable": True}


def _names(prefix: str, count: int = 5) -> list[str]:
    return [f"{prefix}-{i}" for i in range(count)]


@pytest.mark.parametrize("ignorable", [True, False])
def test_an_extender_whose_work_takes_5_s_is_neutral_after_its_deadline(
    plane: ControlPlane, writer: ClusterWriter, ignorable: bool
) -> None:
    """The answers are in time and in order, so this holds even where the extender must not be ignored."""
    slow = SimpleExtender()
    release = threading.Event()
    with served(create_app(slow, ServiceOptions(deadline=0.2))) as url:
        # An answer in time shows that it is the rules of the made-up extender that are not heard later.
        httpx.post(f"{url}/filter", json={"Pod": {"metadata": {"name": "p"}}, "NodeNames": []}).raise_for_status()

        def wait() -> None:
            release.wait(5)

        slow.fail = wait
        entry = extender(url, **VERBS) | {"ignorable": ignorable}
        with KubeScheduler(plane, [entry], settings=QUICK) as scheduler:
            began = time.monotonic()
            assert len(placed(writer, scheduler, _names("cart", 8))) == 8
            # Eight pods, two questions each, 5 s for an answer in earnest.
            assert time.monotonic() - began < 40
        text = httpx.get(f"{url}/metrics").text
        release.set()
    late = {
        line.partition('verb="')[2].partition('"')[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("forecast_extender_late_total{")
    }
    assert late["filter"] >= 8 and late["prioritize"] >= 8


def test_an_extender_that_finds_fault_with_itself_is_neutral(plane: ControlPlane, writer: ClusterWriter) -> None:
    broken = SimpleExtender()

    def fail() -> None:
        raise KeyError("a mistake")

    broken.fail = fail
    with (
        served(create_app(broken, ServiceOptions(deadline=20))) as url,
        KubeScheduler(plane, [extender(url, **VERBS)], settings=QUICK) as scheduler,
    ):
        assert len(placed(writer, scheduler, _names("cart"))) == 5
    assert len(broken.asked) >= 10


GARBAGE = {
    "nothing": (200, b""),
    "no JSON": (200, b"<html>" + b"\x00\xff" * 1000),
    "of another shape": (200, b'{"NodeNames": 5, "Host": [1.5]}'),
    "a node nobody asked for": (200, b'{"NodeNames": ["nowhere"]}'),
    "status 500": (500, b'{"Error": "a mistake"}'),
    "half of an answer": (None, b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"NodeNames": ['),
}


@contextlib.contextmanager
def _talking_garbage(status: int | None, content: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if status is None:
                self.wfile.write(content)
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", GARBAGE)
def test_an_extender_that_talks_garbage_is_gone_without(plane: ControlPlane, writer: ClusterWriter, kind: str) -> None:
    with (
        _talking_garbage(*GARBAGE[kind]) as url,
        KubeScheduler(plane, [extender(url, **IGNORABLE)], settings=QUICK) as scheduler,
    ):
        assert len(placed(writer, scheduler, _names("cart"))) == 5


@pytest.mark.parametrize(
    "ignorable",
    [pytest.param(True, id="ignorable"), pytest.param(False, id="not ignorable", marks=pytest.mark.long)],
)
def test_no_pod_is_lost_or_bound_twice_where_bindings_fail_half_way(
    plane: ControlPlane, writer: ClusterWriter, ignorable: bool
) -> None:
    """The connection to the API server is reset again and again while sixty pods are bound through us."""
    with TcpProxy(plane.api_server.port) as proxy:
        api = api_client(plane.write_kubeconfig("admin", plane.token, url=proxy.url), connections=32)
        binder = ApiServerBinder(api)
        over = threading.Event()

        def trouble() -> None:
            while not over.wait(0.03):
                proxy.lose_answers(1)

        troublemaker = threading.Thread(target=trouble)
        troublemaker.start()
        names = _names("cart", 60)
        try:
            with served(create_app(SimpleExtender(), ServiceOptions(deadline=20), binder=binder)) as url:
                entry = extender(url, bindVerb="bind", **VERBS) | {"ignorable": ignorable}
                with KubeScheduler(plane, [entry], settings=QUICK) as scheduler:
                    nodes = placed(writer, scheduler, names, 120)
                    lost = proxy.lost
                    over.set()
                    # What kube-scheduler believes of the node is what is: there is room for these and they find it.
                    more = placed(writer, scheduler, _names("more", 40), 60)
        finally:
            over.set()
            troublemaker.join()
            api.rest_client.pool_manager.clear()
    assert lost >= 3
    assert set(nodes.values()) | set(more.values()) == {"good"} and len(nodes) == 60 and len(more) == 40


def test_a_binder_that_fails_every_other_time_places_every_pod(plane: ControlPlane, writer: ClusterWriter) -> None:
    """Errors of ours before and after the pod was really bound: kube-scheduler tries again or finds it bound."""
    api = api_client(plane.kubeconfig, connections=32)
    honest, calls, lock = ApiServerBinder(api), Counter[str](), threading.Lock()

    class Unreliable(SimpleBinder):
        def bind(self, binding: object) -> None:
            with lock:
                calls["all"] += 1
                number = calls["all"]
            if number % 4 == 1:
                raise KeyError("before")
            honest.bind(binding)  # type: ignore[arg-type]
            if number % 4 == 3:
                raise KeyError("after")

    with (
        served(create_app(SimpleExtender(), ServiceOptions(deadline=20), binder=Unreliable())) as url,
        KubeScheduler(plane, [extender(url, bindVerb="bind", **VERBS)], settings=QUICK) as scheduler,
    ):
        nodes = placed(writer, scheduler, _names("cart", 24), 120)
    api.rest_client.pool_manager.clear()
    assert set(nodes.values()) == {"good"} and calls["all"] > 24


def test_binding_that_is_off_says_so_in_the_pods_events(plane: ControlPlane, writer: ClusterWriter) -> None:
    """A bindVerb without a binder: nothing is bound, and kube-scheduler's log names the way out."""
    with served(create_app(SimpleExtender(), ServiceOptions(deadline=20))) as url:
        with KubeScheduler(plane, [extender(url, bindVerb="bind", **VERBS)], settings=QUICK) as scheduler:
            writer.create(pod("cart-1"))
            deadline = time.monotonic() + 60
            while "remove bindVerb" not in scheduler.log.read_text(errors="replace"):
                assert time.monotonic() < deadline, scheduler.end_of_log()
                time.sleep(0.05)
        assert not any(p["spec"].get("nodeName") for p in writer.list_all("pods"))
        # Without bindVerb, as the message says, the very same pod is placed.
        with KubeScheduler(plane, [extender(url, **VERBS)], settings=QUICK) as scheduler:
            assert wait_until_placed(writer, scheduler, ["cart-1"]) == {"cart-1": "good"}


def test_an_extender_that_starts_late_is_neutral_until_it_is_ready(plane: ControlPlane, writer: ClusterWriter) -> None:
    starting = SimpleExtender()
    starting.ready = False
    with (
        served(create_app(starting, ServiceOptions(deadline=20))) as url,
        KubeScheduler(plane, [extender(url, **VERBS)], settings=QUICK) as scheduler,
    ):
        assert len(placed(writer, scheduler, _names("before"))) == 5
        assert starting.asked == []
        starting.ready = True
        assert set(placed(writer, scheduler, _names("after")).values()) == {"good"}
