"""Every way to run `forecast-scheduler extender`, beside a real kube-scheduler: what becomes of the pods."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.processes.command import command
from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.prometheus import PrometheusServer, free_port
from testing.waiting import eventually
from tests.processes.conftest import Started
from tests.processes.placing import Placing, counter, decisions, events

WEIGHT = 200
"""One point counts 2,000, and kube-scheduler's own scores 1,200 at most: the node with the most points is taken."""

VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": WEIGHT}
QUICK = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
POOL, CARD = "test/pool", "nvidia.com/gpu"
Extending = Callable[..., ScorerProcess]


@pytest.fixture
def extending(start: Started, prometheus: PrometheusServer) -> Extending:
    """start, for the other command. The deadline is long, as the machine may be busy.

    settings : of its group; cards: of node_rules
    """

    def start_extender(
        *arguments: str | Path, settings: dict[str, Any] | None = None, cards: dict[str, Any] | None = None, **rest: Any
    ) -> ScorerProcess:
        groups = {
            "node_rules": {"cards": cards or {}},
            "scorer": {"usage_every": "1s", "model_every": "1s"},
            "extender": {"deadline": "9s", "weight": WEIGHT} | (settings or {}),
        }
        return start("--prometheus", prometheus.url, *arguments, settings=groups, command="extender", **rest)

    return start_extender


@pytest.fixture
def placing(writer: ClusterWriter) -> Iterator[Placing]:
    with Placing(writer) as placing:
        yield placing


@pytest.fixture
def pods(cluster: Scenery) -> Callable[[str, int], list[Manifest]]:
    """Pods of five services, by name."""
    return lambda prefix, count: [cluster.pod(f"{prefix}-{i:02d}", service=i % 5) for i in range(count)]


def asked(process: ScorerProcess, verb: str, outcome: str = "answered") -> float:
    return counter(process, "forecast_extender_requests_total", outcome=outcome, verb=verb)


def test_a_scorer_in_a_process_of_its_own_killed_and_back_again(
    plane: ControlPlane,
    start: Started,
    extending: Extending,
    prometheus: PrometheusServer,
    placing: Placing,
    pods: Callable[[str, int], list[Manifest]],
    tmp_path: Path,
) -> None:
    log = tmp_path / "decisions.jsonl"
    scorer = start("--prometheus", prometheus.url, "--port", str(free_port()))
    live = extending("--scorer", scorer.url, "--decisions", log)

    def follows_the_points(prefix: str) -> None:
        nodes = placing.place(pods(prefix, 6))
        lines = decisions(log, nodes)
        assert {name: line["node"] for name, line in lines.items()} == nodes
        assert [line["rank"] for line in lines.values()] == [1] * 6
        assert max(line["advised_points"] for line in lines.values()) > 0
        assert all(line["model"] for line in lines.values())

    with KubeScheduler(plane, [extender(live.url, ignorable=True, **VERBS)], settings=QUICK):
        follows_the_points("before")
        assert "/v1/charges" in scorer.http.get("/metrics").text
        scorer.kill()
        placing.place(pods("without", 6))
        assert asked(live, "prioritize", "failed") >= 6
        assert asked(live, "filter") >= 12
        scorer.start()
        scorer.wait_ready()
        follows_the_points("after")
    logged = {json.loads(line)["pod"].partition("/")[2].partition("-")[0] for line in log.read_text().splitlines()}
    assert logged == {"before", "after"}  # nothing was advised without scores
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]
    assert len([line for line in live.complaints if "/prioritize failed" in line]) == 1  # and not once for each pod


def test_a_killed_extender_is_gone_without_and_asked_again_once_it_is_back(
    plane: ControlPlane, extending: Extending, placing: Placing, pods: Callable[[str, int], list[Manifest]]
) -> None:
    live = extending("--port", str(free_port()))
    with KubeScheduler(plane, [extender(live.url, ignorable=True, **VERBS)], settings=QUICK):
        placing.place(pods("before", 10))
        assert min(asked(live, "filter"), asked(live, "prioritize")) >= 10
        live.kill()
        placing.place(pods("without", 10))
        live.start()
        live.wait_ready()
        placing.place(pods("after", 10))
        assert min(asked(live, "filter"), asked(live, "prioritize")) >= 10
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


def test_bindings_over_a_connection_that_breaks_all_the_time_lose_and_double_nothing(
    plane: ControlPlane,
    cluster: Scenery,
    extending: Extending,
    placing: Placing,
    pods: Callable[[str, int], list[Manifest]],
) -> None:
    """--bind, and the extender's connections to the API server are reset while answers are on their way."""
    with TcpProxy(plane.api_server.port) as proxy:
        kubeconfig = plane.write_kubeconfig("admin", plane.token, url=proxy.url)
        live, over = extending("--bind", kubeconfig=kubeconfig), threading.Event()

        def trouble() -> None:
            while not over.wait(0.05):
                proxy.lose_answers(1)

        troublemaker = threading.Thread(target=trouble)
        with KubeScheduler(plane, [extender(live.url, bindVerb="bind", **VERBS)], settings=QUICK):
            troublemaker.start()
            try:
                nodes = placing.place(pods("bound", 60), 150)
                lost = proxy.lost
            finally:
                over.set()
                troublemaker.join()
            placing.place(pods("later", 20))  # what kube-scheduler believes is good for more
        assert set(nodes.values()) <= set(cluster.nodes) and lost >= 3
        assert asked(live, "bind") > 0
        assert eventually(lambda: live.metric("forecast_ready") == 1)
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


def test_a_shadow_changes_nothing_and_writes_down_what_it_would_have_advised(
    plane: ControlPlane,
    cluster: Scenery,
    extending: Extending,
    placing: Placing,
    pods: Callable[[str, int], list[Manifest]],
    tmp_path: Path,
) -> None:
    log = tmp_path / "decisions.jsonl"
    # A domain to which no node belongs: were it not for the shadow, no pod would be placed.
    live = extending("--shadow", "--decisions", log, settings={"domain": "of-nobody"}, cards={"without_cards": "hard"})
    question = {"Pod": cluster.pod("asked"), "NodeNames": cluster.nodes}
    assert live.http.post("/prioritize", json=question).json() == []
    assert live.post("/filter", question)["NodeNames"] == cluster.nodes
    with KubeScheduler(plane, [extender(live.url, **VERBS)], settings=QUICK):
        nodes = placing.place(pods("shadowed", 20))
    lines = decisions(log, nodes)
    assert {name: line["node"] for name, line in lines.items()} == nodes
    assert all(line["shadow"] and not line["late"] and line["nodes"] == len(cluster.nodes) for line in lines.values())
    # kube-scheduler spreads by requests and was told nothing: with our points every rank would be 1.
    assert max(line["rank"] for line in lines.values()) > 1
    assert "forecast_decision_events" not in live.http.get("/metrics").text  # nobody is there to write any
    assert counter(live, "forecast_decisions_total", mode="shadow", outcome="elsewhere") > 0

    assert not nodes.keys() & (events(plane, "ForecastShadow").keys() | events(plane, "ForecastScheduled").keys())


def test_decisions_are_logged_told_as_events_and_counted_and_soft_reservations_hold(
    plane: ControlPlane,
    cluster: Scenery,
    extending: Extending,
    placing: Placing,
    pods: Callable[[str, int], list[Manifest]],
    tmp_path: Path,
) -> None:
    log = tmp_path / "decisions.jsonl"
    soft = {"decisions": {"events_per_second": 100}}
    live = extending("--decisions", log, settings=soft)
    placing.make(
        node("soft-0", cpu="64", labels={POOL: "soft"}, extended={CARD: "8"}),
        node("soft-1", cpu="8", labels={POOL: "soft"}),
    )
    plain = [_in_pool(cluster.pod(f"plain-{i}"), "soft") for i in range(4)]

    def charges() -> list[float]:
        return [counter(live, "forecast_extender_charges_total", outcome=name) for name in ("right", "wrong")]

    with KubeScheduler(plane, [extender(live.url, **VERBS)], settings=QUICK):
        assert set(placing.place(plain).values()) == {"soft-1"}
        assert eventually(lambda: charges()[0] > 0) and charges()[1] == 0  # there was nothing to guess
        nodes = placing.place(pods("active", 20)) | dict.fromkeys((f"plain-{i}" for i in range(4)), "soft-1")
        # Where nothing else is left, a node that is kept for others is better than none.
        with_card = _in_pool(cluster.pod("with-card", requests={CARD: "1"}, limits={CARD: "1"}), "soft")
        alone = {"with-card": "soft-0", "large": "soft-0"}
        assert placing.place([with_card, _in_pool(cluster.pod("large"), "soft", cpu="20")]) == alone

    # Where one node is left nobody is asked for points.
    lines = decisions(log, nodes)
    assert lines.keys() == nodes.keys()
    for name, line in lines.items():
        assert (line["node"], line["shadow"], line["late"], line["rank"]) == (nodes[name], False, False, 1)
        assert line["margin"] >= 0 and line["advised_points"] == line["points"]
        assert line["node"] == line["advised_node"] or line["margin"] == 0
    clear = sum(line["margin"] > 0 for line in lines.values())
    assert clear > 4

    as_advised = sum(line["node"] == line["advised_node"] for line in lines.values())
    assert counter(live, "forecast_decisions_total", mode="active", outcome="as_advised") == as_advised
    assert counter(live, "forecast_decisions_total", mode="active", outcome="elsewhere") == len(lines) - as_advised
    assert counter(live, "forecast_decision_log_lines_total", outcome="written") == len(lines)
    right, wrong = charges()
    # Those bound before they could be charged do not count; a guess can be wrong only among equals.
    assert 0 < right <= len(lines) - wrong and wrong <= len(lines) - clear

    assert eventually(lambda: events(plane, "ForecastScheduled").keys() >= lines.keys())
    told = events(plane, "ForecastScheduled")
    for name, line in lines.items():
        assert f"node {line['node']}" in told[name]["note"] and line["model"] in told[name]["note"]
        assert told[name]["regarding"]["uid"] == line["uid"]
    figures = _report("--decisions", log)
    assert figures["decisions"]["all"]["agreement"] == 1


def _report(*arguments: object) -> dict[str, Any]:
    """What `report` says of a log, which it must be able to read."""
    ended = command("report", *arguments, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def _in_pool(pod: Manifest, pool: str, *, cpu: str | None = None) -> Manifest:
    """The same for the nodes of one test only."""
    pod["spec"]["nodeSelector"] = {POOL: pool}
    if cpu is not None:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pod
