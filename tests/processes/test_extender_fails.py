"""The command `forecast-scheduler extender` beside a real kube-scheduler: killed, stopped, cut off, told to end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.prometheus import PrometheusServer, free_port
from testing.waiting import eventually
from tests.processes.conftest import Started

VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 5}
QUICK = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
Extending = Callable[..., ScorerProcess]
Placed = Callable[..., dict[str, str]]


@pytest.fixture
def extending(start: Started, prometheus: PrometheusServer) -> Extending:
    """start, for the other command; the deadline is long, as the machine may be busy."""

    def start_extender(*arguments: str, settings: dict[str, Any] | None = None, **rest: Any) -> ScorerProcess:
        quick = {
            "scorer": {"usage_every": "1s", "model_every": "1s"},
            "extender": {"deadline": "5s"} | (settings or {}),
        }
        return start("--prometheus", prometheus.url, *arguments, settings=quick, command="extender", **rest)

    return start_extender


@pytest.fixture
def placed(writer: ClusterWriter, cluster: Scenery) -> Iterator[Placed]:
    """placed(scheduler, names) -> node by name, once all of these pods have one; they are deleted in the end."""
    made: dict[str, Any] = {}

    def place(scheduler: KubeScheduler, names: Sequence[str], seconds: float = 90) -> dict[str, str]:
        manifests = [cluster.pod(name, service=i % 5) for i, name in enumerate(names)]
        for created in writer.create_many(manifests):
            made[created["metadata"]["uid"]] = created
        deadline = time.monotonic() + seconds
        while True:
            pods = {p["metadata"]["name"]: p for p in writer.list_all("pods")}
            nodes = {name: pods[name]["spec"].get("nodeName", "") for name in names}
            if all(nodes.values()):
                # Nothing and nobody made them anew on the way.
                assert {pods[name]["metadata"]["uid"] for name in names} <= made.keys()
                return nodes
            assert time.monotonic() < deadline, f"not placed: {nodes}; {scheduler.end_of_log()}"
            time.sleep(0.05)

    yield place
    writer.delete_many(made.values())


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{i:02d}" for i in range(count)]


def requests(process: ScorerProcess, verb: str, outcome: str) -> float:
    """How many there were."""
    series = f'forecast_extender_requests_total{{outcome="{outcome}",verb="{verb}"}} '
    lines = process.http.get("/metrics").raise_for_status().text.splitlines()
    return next(float(line.removeprefix(series)) for line in lines if line.startswith(series))


def test_a_killed_extender_is_gone_without_and_asked_again_once_it_is_back(
    plane: ControlPlane, extending: Extending, placed: Placed
) -> None:
    live = extending("--port", str(free_port()))
    with KubeScheduler(plane, [extender(live.url, ignorable=True, **VERBS)], settings=QUICK) as scheduler:
        placed(scheduler, _names("before", 10))
        assert requests(live, "filter", "answered") >= 10 and requests(live, "prioritize", "answered") >= 10
        live.kill()
        placed(scheduler, _names("without", 10))
        live.start()
        live.wait_ready()
        placed(scheduler, _names("after", 10))
        assert requests(live, "filter", "answered") >= 10 and requests(live, "prioritize", "answered") >= 10
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


def test_a_stopped_extender_costs_its_http_timeout_and_no_pod(
    plane: ControlPlane, extending: Extending, placed: Placed
) -> None:
    live = extending()
    assert live.process is not None
    entry = extender(live.url, ignorable=True, **VERBS) | {"httpTimeout": "300ms"}
    with KubeScheduler(plane, [entry], settings=QUICK) as scheduler:
        placed(scheduler, _names("before", 5))
        os.kill(live.process.pid, signal.SIGSTOP)
        try:
            placed(scheduler, _names("during", 5))
        finally:
            os.kill(live.process.pid, signal.SIGCONT)
        live.wait_ready()
        answered = requests(live, "prioritize", "answered")
        placed(scheduler, _names("after", 5))
        assert requests(live, "prioritize", "answered") >= answered + 5


def test_told_to_end_it_answers_what_it_was_asked_and_ends(
    plane: ControlPlane, extending: Extending, placed: Placed
) -> None:
    live = extending()
    with KubeScheduler(plane, [extender(live.url, ignorable=True, **VERBS)], settings=QUICK) as scheduler:
        statuses: list[int] = []
        ending = threading.Timer(0.3, lambda: statuses.append(live.terminate()))
        ending.start()
        placed(scheduler, _names("cart", 60))
        ending.join(30)
    assert statuses == [0]
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


def test_bindings_over_a_connection_that_breaks_all_the_time_lose_and_double_nothing(
    plane: ControlPlane, cluster: Scenery, extending: Extending, placed: Placed
) -> None:
    """--bind, and the extender's connections to the API server are reset while answers are on their way."""
    with TcpProxy(plane.api_server.port) as proxy:
        kubeconfig = plane.write_kubeconfig("admin", plane.token, url=proxy.url)
        live, over = extending("--bind", kubeconfig=kubeconfig), threading.Event()

        def trouble() -> None:
            while not over.wait(0.05):
                proxy.lose_answers(1)

        troublemaker = threading.Thread(target=trouble)
        with KubeScheduler(plane, [extender(live.url, bindVerb="bind", **VERBS)], settings=QUICK) as scheduler:
            troublemaker.start()
            try:
                nodes = placed(scheduler, _names("cart", 60), 150)
                lost = proxy.lost
            finally:
                over.set()
                troublemaker.join()
            placed(scheduler, _names("later", 20))  # what kube-scheduler believes is good for more
        assert set(nodes.values()) <= set(cluster.nodes) and lost >= 3
        assert requests(live, "bind", "answered") > 0
        assert eventually(lambda: live.metric("forecast_ready") == 1)
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


@pytest.mark.long
def test_two_replicas_agree(plane: ControlPlane, cluster: Scenery, extending: Extending, placed: Placed) -> None:
    """Each places half of the pods; once both have seen where they went, both say the same of the next one."""
    replicas = [extending(), extending()]
    with (
        KubeScheduler(plane, [extender(replicas[0].url, **VERBS)], settings=QUICK) as scheduler,
    ):
        first = placed(scheduler, _names("first", 30))
    with KubeScheduler(plane, [extender(replicas[1].url, **VERBS)], settings=QUICK) as scheduler:
        second = placed(scheduler, _names("second", 30))
    assert len(set(first.values()) | set(second.values())) > 1
    spreads: list[int] = []
    for service in range(10):
        question = {"Pod": cluster.pod(f"next-{service}", service=service), "NodeNames": cluster.nodes}

        def points(one: ScorerProcess, question: dict[str, Any] = question) -> dict[str, int]:
            return {
                p["Host"]: p["Score"] for p in one.http.post("/prioritize", json=question).raise_for_status().json()
            }

        def agree() -> bool:
            one, other = points(replicas[0]), points(replicas[1])
            # Usage is measured every second, by each for itself; a point is the least there is.
            spreads.append(max(one.values(), default=0) - min(one.values(), default=0))
            return all(abs(one.get(node, 0) - other.get(node, 0)) <= 1 for node in cluster.nodes)

        assert eventually(agree)
        filtered = [one.http.post("/filter", json=question).json()["NodeNames"] for one in replicas]
        assert filtered[0] == filtered[1] and filtered[0]
    assert max(spreads) > 4  # so that they had something to disagree about
