"""A thousand bindings at once through a real API server while connections, answers and the server itself are lost.

After each: every pod is on the node it was given, or was reported as not bound and is on none of ours.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube.client.kubernetes_client import api_client
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.default_binder import DefaultBinder
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import Ending, Reserved
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from tests.scheduler.binding.made_up import Done, pod_of

N_NODES = 10
PATIENT = 60.0
"""Seconds for one binding: the machine may be busy with other tests."""


class Holder:
    """Reserve: what it holds, by UID, and what was given back twice or without having been held."""

    name = "Holder"

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.mistakes: list[str] = []

    def reserve(self, pod: PodInfo, node: str) -> None:
        self.held.add(pod.uid)

    def unreserve(self, pod: PodInfo, node: str) -> None:
        if pod.uid not in self.held:
            self.mistakes.append(pod.name)
        self.held.discard(pod.uid)


class Burst:
    """Pods that are bound through a session, to nodes in turn."""

    def __init__(self, kubeconfig: Path, *, seconds: float = PATIENT, attempt_seconds: float = 10.0) -> None:
        self.session = ApiSession(api_client(kubeconfig), connections=64)
        self.session.start()
        self.holder, self.done = Holder(), Done()
        self.limit = InFlightLimit(64, clock=time.monotonic)
        binder = DefaultBinder(self.session, self.limit, seconds=seconds, attempt_seconds=attempt_seconds)
        plugins = BindingPlugins((binder,), (self.holder,))  # type: ignore[arg-type]
        self.cycles = BindingCycles(self.session, lambda pod: plugins, limit=self.limit)
        self.reserved: list[Reserved] = []

    def start(self, created: Sequence[Manifest]) -> None:
        self.reserved = [Reserved(pod_of(one), f"node-{i % N_NODES}") for i, one in enumerate(created)]
        for one in self.reserved:
            self.holder.held.add(one.pod.uid)
        self.cycles.start(self.reserved, self.done)

    def settle(self) -> dict[str, Ending]:
        """What became of each, by UID, in the end: those that are not known are asked for until they are."""
        self.done.wait(len(self.reserved), 240)
        ended = {one.pod.uid: self.done.only(one.pod.uid).ending for one in self.reserved}
        for _ in range(20):
            unknown = [one for one in self.reserved if ended[one.pod.uid] is Ending.UNKNOWN]
            again = Done()
            for one in unknown:
                self.cycles.ask(one, again)
            again.wait(len(unknown), 240)
            ended |= {one.pod.uid: again.only(one.pod.uid).ending for one in unknown}
        return ended

    def close(self) -> None:
        self.cycles.stop()
        self.session.stop()


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[TcpProxy]:
    with TcpProxy(plane.api_server.port) as proxy:
        yield proxy


@pytest.fixture(scope="module", autouse=True)
def _nodes(plane: ControlPlane) -> None:
    with ClusterWriter(plane) as writer:
        writer.create_many(node(f"node-{i}") for i in range(N_NODES))


@pytest.fixture
def burst(plane: ControlPlane, proxy: TcpProxy) -> Iterator[Callable[..., Burst]]:
    """Bursts whose connections go through the proxy."""
    made: list[Burst] = []

    def of(**settings: float) -> Burst:
        made.append(Burst(plane.write_kubeconfig("admin", plane.token, url=proxy.url), **settings))
        return made[-1]

    yield of
    for one in made:
        one.close()


def created(writer: ClusterWriter, count: int) -> list[Manifest]:
    """Pods of a name that no other test has: what is left behind disturbs nobody."""
    name = f"cart-{secrets.token_hex(4)}"
    return writer.create_many(pod(f"{name}-{i:04d}") for i in range(count))


def nodes_of(writer: ClusterWriter) -> dict[str, str]:
    return {one["metadata"]["uid"]: one["spec"].get("nodeName", "") for one in writer.list_all("pods")}


def assert_true(burst: Burst, ended: dict[str, Ending], writer: ClusterWriter) -> None:
    """What was told is what the API server says, and exactly what failed was given back."""
    there = nodes_of(writer)
    for one in burst.reserved:
        uid = one.pod.uid
        assert (there.get(uid) == one.node) == (ended[uid] is Ending.BOUND), (one.pod.name, ended[uid], there.get(uid))
        assert (uid in burst.holder.held) == (ended[uid] is Ending.BOUND)
    assert not burst.holder.mistakes


@contextmanager
def again_and_again(trouble: Callable[[], object], burst: Burst, *, times: int) -> Iterator[None]:
    """Make trouble whenever some more pods were told about, so often that every machine sees it in the middle."""
    over, share = threading.Event(), len(burst.reserved) // (times + 1)
    made = []

    def make() -> None:
        for number in range(times):
            while len(burst.done.told) < number * share and not over.is_set():
                time.sleep(0.002)
            trouble()
            made.append(number)

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert len(made) == times


@pytest.mark.parametrize(
    ("trouble", "count", "times", "settings"),
    [
        pytest.param(TcpProxy.cut, 1000, 10, {}, id="connections are reset", marks=pytest.mark.long),
        pytest.param(lambda proxy: proxy.lose_answers(1), 250, 8, {}, id="carried out, but the answer is lost"),
        pytest.param(TcpProxy.freeze, 200, 2, {"attempt_seconds": 1.0}, id="connections say nothing and never end"),
    ],
)
def test_trouble_again_and_again_during_many_bindings_loses_none(
    writer: ClusterWriter,
    burst: Callable[..., Burst],
    proxy: TcpProxy,
    trouble: Callable[[TcpProxy], object],
    count: int,
    times: int,
    settings: dict[str, float],
) -> None:
    storm = burst(**settings)
    storm.start(created(writer, count))
    with again_and_again(lambda: trouble(proxy), storm, times=times):
        ended = storm.settle()
    assert set(ended.values()) == {Ending.BOUND}
    assert_true(storm, ended, writer)


def test_an_outage_longer_than_a_binding_may_take_is_not_known_and_settled_later(
    writer: ClusterWriter, burst: Callable[..., Burst], proxy: TcpProxy
) -> None:
    storm = burst(seconds=1.0, attempt_seconds=0.5)
    storm.start(created(writer, 240))
    storm.done.wait(20)
    proxy.refuse(True)
    storm.done.wait(240, 240)
    assert any(told[0].ending is Ending.UNKNOWN for told in storm.done.told.values())
    proxy.refuse(False)
    ended = storm.settle()
    assert Ending.UNKNOWN not in ended.values()
    assert_true(storm, ended, writer)


def test_an_api_server_that_is_killed_and_comes_back_loses_none(
    plane: ControlPlane, writer: ClusterWriter, burst: Callable[..., Burst]
) -> None:
    """Last, since connections of others end, too."""
    storm = burst(seconds=5.0, attempt_seconds=2.0)
    storm.start(created(writer, 500))
    storm.done.wait(50)
    plane.api_server.kill()
    plane.api_server.start()
    ended = storm.settle()
    assert Ending.UNKNOWN not in ended.values()
    with ClusterWriter(plane) as new:
        assert_true(storm, ended, new)
