"""Every way to run `forecast-scheduler extender`, beside a real kube-scheduler: what becomes of the pods."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
import yaml

from forecast.resources import RESOURCES
from testing.authority import Authority
from testing.processes.command import command
from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ROOT, ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from testing.servers.prometheus import PrometheusServer, free_port
from tests.forecast_scheduler.small_history import COLUMNS, Tables
from tests.processes.conftest import Started
from tests.processes.placing import Placing, counter, decisions, events

WEIGHT = 200
"""One point counts 2,000, and kube-scheduler's own scores 1,200 at most: the node with the most points is taken."""

VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": WEIGHT}
QUICK = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
OURS = "forecast-scheduler.io/"
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


def test_the_shipped_configuration_over_tls_with_client_certificates(
    plane: ControlPlane,
    extending: Extending,
    placing: Placing,
    pods: Callable[[str, int], list[Manifest]],
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path, "authority")
    (server, key), (mine, mine_key) = authority.issue("extender"), authority.issue("kube-scheduler")
    live = extending("--tls-cert", server, "--tls-key", key, "--client-ca", authority.ca, ready=False)
    trusting = ssl.create_default_context(cafile=str(authority.ca))
    trusting.load_cert_chain(mine, mine_key)
    live.http.close()
    live.http = httpx.Client(base_url=live.url, verify=trusting, timeout=20)
    live.wait_ready()
    assert live.url.startswith("https://")

    shipped = (ROOT / "deploy/kube-scheduler/scheduler-config.yaml").read_text()
    for theirs, ours in {
        "/etc/kubernetes/scheduler.conf": plane.kubeconfig,
        "https://127.0.0.1:8888": live.url,
        "/etc/forecast-scheduler/ca.crt": authority.ca,
        "/etc/forecast-scheduler/kube-scheduler.crt": mine,
        "/etc/forecast-scheduler/kube-scheduler.key": mine_key,
    }.items():
        assert shipped.count(theirs) == 1
        shipped = shipped.replace(theirs, str(ours))
    configuration = yaml.safe_load(shipped)

    def reached() -> tuple[float, float]:
        # Its httpTimeout is a second: where the machine is busy an answer may come too late for kube-scheduler.
        return tuple(asked(live, verb, "answered") for verb in ("filter", "prioritize"))  # type: ignore[return-value]

    with KubeScheduler(plane, settings=configuration):
        placing.place(pods("known", 5))
        assert min(reached()) >= 5
    before = reached()
    tls = configuration["extenders"][0]["tlsConfig"]
    del tls["certFile"], tls["keyFile"]
    with KubeScheduler(plane, settings=configuration) as scheduler:
        placing.place(pods("unknown", 5))
        said = scheduler.log.read_text(errors="replace")
        assert said.count("Skipping extender as it returned error") >= 5
    assert reached() == before
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

    history = _history(cluster, lines).write(tmp_path / "history")
    figures = _report("--decisions", log, "--history", history)
    assert (figures["decisions"]["shadow"], figures["decisions"]["all"]["decisions"]) == (20, 20)
    moved = sum(line["points"] < line["advised_points"] for line in lines.values())
    assert figures["placements"]["pods"]["moved"] == moved > 0
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


def test_our_filters_keep_pods_pending_with_a_reason_until_the_obstacle_is_gone(
    plane: ControlPlane, cluster: Scenery, writer: ClusterWriter, extending: Extending, placing: Placing
) -> None:
    live = extending(settings={"highest_peaks": {"cpu": 0.9}}, cards={"without_cards": "hard"})
    group = OURS + "machine-group"
    peaks = cluster.truth.model.usage_day_type[:, 0].reshape(len(cluster.truth.model.services), -1).max(axis=1)
    largest, size = int(peaks.argmax()), f"{max(float(peaks.max()) / 2, 0.25):.3f}"  # its peak is twice the small node
    machines = {
        "domain": node("domain", labels={POOL: "domain", OURS + "domain": "of-others"}),
        "group": node("group", labels={POOL: "group", group: "batch"}),
        "no-group": node("no-group", labels={POOL: "no-group"}),
        "card": node("card", labels={POOL: "card"}, extended={CARD: "8"}),
        "peak": node("peak", labels={POOL: "peak"}, cpu=size),
    }
    placing.make(*machines.values())
    waiting = {pool: _in_pool(cluster.pod(f"in-{pool}"), pool) for pool in ("domain", "group", "card")}
    waiting["no-group"] = _in_pool(cluster.pod("in-no-group", annotations={group: "batch"}), "no-group")
    waiting["peak"] = _in_pool(cluster.pod("in-peak", service=largest), "peak", cpu="10m")
    let_in = [
        _in_pool(cluster.pod("of-the-group", annotations={group: "web, batch"}), "group"),
        _in_pool(cluster.pod("opted-out", service=largest, annotations={OURS + "opt-out": "true"}), "peak", cpu="10m"),
        _in_pool(cluster.pod("with-card", requests={CARD: "1"}, limits={CARD: "1"}), "card"),
    ]
    reasons = {
        "domain": "1 node(s) belonged to another scheduling domain",
        "group": "1 node(s) belonged to a machine group that the pod does not name",
        "no-group": "1 node(s) belonged to no machine group, the pod names one",
        "card": "1 node(s) had cards, and the pod asks for none",
        "peak": "1 predicted peak of cpu would pass 90 % of capacity",
    }
    with KubeScheduler(plane, [extender(live.url, ignorable=True, **VERBS)], settings=QUICK):
        placing.make(*waiting.values())
        for pool, reason in reasons.items():
            assert eventually(lambda p=pool, r=reason: r in placing.message(f"in-{p}"), 30), (  # type: ignore[misc]
                pool,
                placing.message(f"in-{pool}"),
            )
        assert placing.place(let_in) == {"of-the-group": "group", "opted-out": "peak", "with-card": "card"}
        assert not any(_is_placed(writer, f"in-{pool}") for pool in waiting)

        writer.patch(machines["domain"], {"metadata": {"labels": {OURS + "domain": None}}})
        writer.patch(machines["group"], {"metadata": {"labels": {group: None}}})
        writer.patch(machines["no-group"], {"metadata": {"labels": {group: "batch"}}})
        writer.patch_status(machines["card"], {"capacity": {CARD: None}, "allocatable": {CARD: None}})
        writer.patch_status(machines["peak"], {"capacity": {"cpu": "64"}, "allocatable": {"cpu": "64"}})
        names = {f"in-{pool}": pool for pool in waiting}
        assert placing.wait(list(names)) == names
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


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


def _is_placed(writer: ClusterWriter, name: str) -> bool:
    return any(p["spec"].get("nodeName") for p in writer.list_all("pods") if p["metadata"]["name"] == name)


def _history(cluster: Scenery, lines: dict[str, dict[str, Any]]) -> Tables:
    """Yesterday to tomorrow, with every pod of the log at one core where it was bound."""
    today = pd.Timestamp(datetime.now(UTC)).normalize()
    times = pd.date_range(today - pd.Timedelta("1D"), periods=3 * 48, freq="30min")
    usage, requests = [], []
    for name, line in lines.items():
        namespace, service = line["service"].split("/", 1)
        frame = pd.DataFrame({"timestamp": times, "cpu_cores": 1.0, "memory_bytes": 2.0**30})
        usage.append(frame.assign(namespace=namespace, service=service, pod=name, node=line["node"]))
        requests.append((namespace, service, name, 0.25, 2.0**29))
    own = {name: 2.0 + sum(line["node"] == name for line in lines.values()) for name in cluster.nodes}
    nodes = [pd.DataFrame({"timestamp": times, "cpu_cores": cores, "node": name}) for name, cores in own.items()]
    model = cluster.truth.model
    assert len(RESOURCES) == len(COLUMNS)
    capacity = pd.DataFrame(model.node_capacity, columns=list(COLUMNS)).assign(node=list(model.nodes))
    columns = ["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
    return Tables(
        usage=pd.concat(usage, ignore_index=True),
        pods=pd.DataFrame(requests, columns=columns),
        nodes=pd.concat(nodes, ignore_index=True),
        capacity=capacity,
    )
