"""What nodes use right now, asked of a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from base.errors import ForecastError
from cluster.live.usage import usage_by_row
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage
from testing.servers.bad_proxy import BadProxy, first
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import Scrapes
from trainer.prometheus.live_usage import LiveUsage, MeasuredNodes
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions, PrometheusOptions
from trainer.prometheus.queries import Queries

AHEAD = 1200
"""Seconds for which there are samples still to come: to a server its series look like scraped ones."""

TOTAL = 3e10


def _going_on(series: Sequence[MetricSeries]) -> list[MetricSeries]:
    """The same series around now, scraped at every full minute."""
    last = int(time.time()) // 60 * 60 + AHEAD
    return [MetricSeries(one.name, one.labels, one.times - int(one.times[-1]) + last, one.values) for one in series]


def _is_last_scrape(sampled: Any, asked: float) -> bool:
    """Whether these are the times of the last full minute, when asked at some time."""
    minutes = {asked // 60 * 60, time.time() // 60 * 60}  # one may have begun meanwhile
    return len(sampled) > 0 and set(np.asarray(sampled).tolist()) <= minutes


def _exporters(scrapes: Scrapes, numbers: Sequence[int]) -> None:
    """Node number i uses i cores, i GB, 3i MB/s of disk, 5i MB/s of network; much must not be counted."""
    for i in numbers:
        where: dict[str, Any] = {"instance": f"10.0.0.{i}:9100"}
        scrapes.counter("node_cpu_seconds_total", 0.75 * i, **where, cpu=0, mode="user")
        scrapes.counter("node_cpu_seconds_total", 0.25 * i, **where, cpu=1, mode="system")
        scrapes.counter("node_cpu_seconds_total", 5, **where, cpu=0, mode="idle")
        scrapes.gauge("node_memory_MemTotal_bytes", TOTAL, **where)
        scrapes.gauge("node_memory_MemAvailable_bytes", TOTAL - i * 1e9, **where)
        for device in ("sda", "sda1", "dm-0"):
            scrapes.counter("node_disk_read_bytes_total", 1e6 * i, **where, device=device)
            scrapes.counter("node_disk_written_bytes_total", 2e6 * i, **where, device=device)
        for device in ("eth0", "veth12", "cni0", "lo"):
            scrapes.counter("node_network_receive_bytes_total", 2e6 * i, **where, device=device)
            scrapes.counter("node_network_transmit_bytes_total", 3e6 * i, **where, device=device)


def _recorded(scrapes: Scrapes, numbers: Sequence[int], resources: Sequence[str], **labels: Any) -> None:
    """As rules would have: node number i uses 100 i of everything."""
    for i in numbers:
        for resource in resources:
            scrapes.gauge("forecast:node_usage", 100 * i, node=f"n{i}", resource=resource, **labels)


def _vector(scrapes: Scrapes) -> None:
    """Two pods on n1 and one on n2 log 10, 20 and 40 B/s."""
    for pod, node, rate in (("a", "n1", 10), ("b", "n1", 20), ("c", "n2", 40)):
        scrapes.pod("shop", pod, node)
        scrapes.counter(
            "vector_component_received_event_bytes_total", rate,
            component_kind="source", component_id="kubernetes_logs", container_name="main",
            pod_namespace="shop", pod_name=pod, namespace="logging", pod=f"vector-{node}",
        )  # fmt: skip


def _fluent_bit(scrapes: Scrapes) -> None:
    for number in (1, 2):
        scrapes.pod("logging", f"fluent-bit-{number}", f"n{number}")
        scrapes.counter(
            "fluentbit_input_bytes_total", 1000 * number, namespace="logging", pod=f"fluent-bit-{number}", name="tail.0"
        )


class Now:
    """A server with some series; asks for them through a proxy that counts. asked: unix seconds of the last time."""

    def __init__(self, server: PrometheusServer) -> None:
        self.server, self.asked, self.n_requests = server, 0.0, 0

    def read(self, **options: Any) -> MeasuredNodes:
        self.asked = time.time()
        with BadProxy(self.server.url, first()) as proxy:
            now = _live(proxy.url, **options).read()
            self.n_requests = len(proxy.requests)
        return now


def _live(url: str, *, queries: Queries | None = None, patience: float = 0.0, **options: Any) -> LiveUsage:
    connection = PrometheusConnection(url, ConnectionOptions(timeout=10, patience=patience))
    return LiveUsage(connection, queries or Queries(), window_seconds=300, **options)


def _serve(directory: Path, scrapes: Scrapes) -> Iterator[Now]:
    write_blocks(_going_on(scrapes.series), directory)
    with PrometheusServer(directory) as server:
        yield Now(server)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Now]:
    """Exporters of two nodes, vector and fluent-bit."""
    scrapes = Scrapes()
    _exporters(scrapes, (1, 2))
    _vector(scrapes)
    _fluent_bit(scrapes)
    yield from _serve(tmp_path_factory.mktemp("raw"), scrapes)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Now]:
    """Everything recorded, by two replicas of which one lags, of forty nodes; and the exporters of two."""
    scrapes = Scrapes()
    every = [resource.name for resource in RESOURCES]
    _exporters(scrapes, (1, 2))
    _recorded(scrapes, range(1, 41), every, prometheus_replica="a")
    for resource in every:
        scrapes.gauge("forecast:node_usage", 1, node="n1", resource=resource, prometheus_replica="b")
        scrapes.gauge("forecast:node_usage", 999, node="n2", resource=resource, prometheus_replica="b")
    for pod, replica in (("cart-1", "a"), ("cart-1", "b"), ("cart-11", "a")):
        where: dict[str, Any] = {"namespace": "shop", "pod": pod, "resource": "cpu"}
        scrapes.gauge("forecast:pod_usage", 3 if replica == "a" else 4, **where, prometheus_replica=replica)
    yield from _serve(tmp_path_factory.mktemp("recorded"), scrapes)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Now]:
    """CPU and memory recorded; nobody measures disk and log; network by exporters that say which node they are on."""
    scrapes = Scrapes()
    _recorded(scrapes, (1, 2), ("cpu", "memory"))
    for i in (1, 2):
        scrapes.counter(
            "node_network_receive_bytes_total", 7 * i, instance=f"10.0.0.{i}:9100", node=f"n{i}", device="eth0"
        )
    yield from _serve(tmp_path_factory.mktemp("mixed"), scrapes)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Now]:
    scrapes = Scrapes()
    scrapes.gauge("up", 1, job="prometheus")
    yield from _serve(tmp_path_factory.mktemp("nothing"), scrapes)


def _of(now: MeasuredNodes, node: str) -> Any:
    return now.usage[now.nodes.index(node)]


def test_exporters_are_read_in_base_units_and_nothing_twice(raw: Now) -> None:
    now = raw.read()
    assert now.nodes == ("10.0.0.1", "10.0.0.2", "n1", "n2")  # the exporters know addresses, kube_pod_info names
    for i in (1, 2):
        usage = _of(now, f"10.0.0.{i}")
        assert usage[[CPU, MEMORY, DISK, NETWORK]] == pytest.approx([i, i * 1e9, 3e6 * i, 5e6 * i], rel=1e-6)
        assert np.isnan(usage[LOG])
    assert _is_last_scrape(now.sampled[:2], raw.asked)
    assert np.isnan(now.sampled[2:]).all()
    assert raw.n_requests == 7


@pytest.mark.parametrize(
    ("source", "log"),
    [
        (LogSource.AUTO, (30.0, 40.0)),
        (LogSource.VECTOR, (30.0, 40.0)),
        (LogSource.FLUENT_BIT, (1000.0, 2000.0)),
        (LogSource.PROMTAIL, None),
        (LogSource.KUBELET, None),
        (LogSource.NONE, None),
    ],
)
def test_log_bytes_of_a_node_are_what_its_pods_or_its_collector_count(
    raw: Now, source: LogSource, log: tuple[float, float] | None
) -> None:
    now = raw.read(log_source=source)
    if log is None:
        assert now.nodes == ("10.0.0.1", "10.0.0.2") and np.isnan(now.usage[:, LOG]).all()
    else:
        assert (_of(now, "n1")[LOG], _of(now, "n2")[LOG]) == pytest.approx(log, rel=1e-6)


def test_a_query_of_the_settings_takes_the_place_of_the_collectors(raw: Now) -> None:
    by_pod = Queries(pod_log="label_replace(kube_pod_info * 0 + 5, 'x', 'y', '', '')")
    by_node = Queries(node_log='label_replace(vector(77), "node", "n9", "", "")')
    assert _of(raw.read(queries=by_pod), "n1")[LOG] == pytest.approx(15)  # a, b and fluent-bit-1
    assert _of(raw.read(queries=by_node), "n9")[LOG] == 77


def test_what_a_node_has_under_two_names_is_put_together(raw: Now) -> None:
    """The scorer knows name and addresses of a node."""
    asked = time.time()
    with BadProxy(raw.server.url, first()) as proxy:
        measured = PrometheusUsage(_live(proxy.url), clock=lambda: asked + 1000).read()
    usage, sampled = usage_by_row(measured, {"10.0.0.1": 0, "n1": 0, "n2": 1, "10.0.0.2": 1}, 3)
    assert usage[0] == pytest.approx([1, 1e9, 3e6, 5e6, 30], rel=1e-6)
    assert usage[1] == pytest.approx([2, 2e9, 6e6, 1e7, 40], rel=1e-6)
    assert np.isnan(usage[2]).all()
    assert _is_last_scrape(sampled[:2], asked) and np.isnan(sampled[2])


def test_the_collector_that_was_found_is_the_only_one_asked_from_then_on(nothing: Now, raw: Now) -> None:
    with BadProxy(raw.server.url, first()) as proxy:
        live = _live(proxy.url, queries=Queries(), log_source=LogSource.AUTO)
        live.read()
        before = len(proxy.requests)
        live.read()
        assert len(proxy.requests) - before == 7
        assert not any("promtail" in path for path in proxy.requests)
    now = nothing.read()
    assert nothing.n_requests == 10  # looking for each of four collectors
    assert now.nodes == () and now.usage.shape == (0, len(RESOURCES)) and now.sampled.shape == (0,)


def test_what_rules_recorded_takes_two_queries_however_many_nodes_there_are(recorded: Now) -> None:
    now = recorded.read()
    assert recorded.n_requests == 2
    assert len(now.nodes) == 40
    assert _of(now, "n40") == pytest.approx([4000] * len(RESOURCES))
    assert _is_last_scrape(now.sampled, recorded.asked)
    # Two replicas record everything twice: the larger counts, in whatever order they come.
    assert _of(now, "n1") == pytest.approx([100] * len(RESOURCES))
    assert _of(now, "n2") == pytest.approx([999] * len(RESOURCES))


def test_pods_are_asked_for_by_name(recorded: Now, raw: Now) -> None:
    names = [("shop", "cart-1"), ("shop", "cart-2"), ("pay", "cart-11")]
    live = _live(recorded.server.url)
    assert live.pods_named("cpu", names) == {("shop", "cart-1"): 4.0}  # the larger of two replicas; no regex
    assert live.pods_named("cpu", []) == live.pods_named("memory", names) == {}
    assert _live(raw.server.url).pods_named("cpu", names) == {}


def test_rules_can_be_ignored(recorded: Now) -> None:
    now = recorded.read(recording_rules=False, log_source=LogSource.NONE)
    assert now.nodes == ("10.0.0.1", "10.0.0.2")
    assert _of(now, "10.0.0.1")[CPU] == pytest.approx(1)


@pytest.mark.parametrize(
    ("source", "log"),
    [(LogSource.AUTO, 4000.0), (LogSource.FLUENT_BIT, 4000.0), (LogSource.VECTOR, None), (LogSource.NONE, None)],
)
def test_recorded_log_bytes_of_another_source_are_not_taken(
    recorded: Now, source: LogSource, log: float | None
) -> None:
    usage = _of(recorded.read(log_source=source), "n40")
    assert usage[CPU] == 4000
    assert usage[LOG] == log if log is not None else np.isnan(usage[LOG])


def test_what_nobody_measures_is_nan(mixed: Now) -> None:
    now = mixed.read()
    assert now.nodes == ("n1", "n2")
    assert now.usage == pytest.approx(
        np.array([[100, 100, np.nan, 7, np.nan], [200, 200, np.nan, 14, np.nan]]), nan_ok=True, rel=1e-6
    )
    assert _is_last_scrape(now.sampled, mixed.asked)


@pytest.mark.parametrize(("action", "says"), [("500", "HTTP 500"), ("drop", "cannot be reached")])
def test_a_server_that_does_not_answer_is_one_sentence(recorded: Now, action: str, says: str) -> None:
    with BadProxy(recorded.server.url, lambda number, path: action) as proxy, pytest.raises(ForecastError, match=says):
        _live(proxy.url).read()


def test_the_time_of_the_samples_is_no_reason_to_fail(recorded: Now) -> None:
    def behaviour(number: int, path: str) -> str:
        return "500" if "timestamp" in path else "pass"

    with BadProxy(recorded.server.url, behaviour) as proxy:
        live = _live(proxy.url)
        assert np.isnan(live.read().sampled).all()
        assert PrometheusUsage(live, clock=lambda: 123.0).read().sampled.tolist() == [123.0] * 40


def test_rates_of_our_own_queries_are_asked_of_each_replica(raw: Now) -> None:
    """Thanos would give a rate that is too low; a query of the settings may count on its deduplication."""
    replaced = {"node_disk": 'sum by (node) (rate(node_disk_read_bytes_total{node!=""}[{window}]))'}
    options = PrometheusOptions(timeout=10, patience=0, queries=replaced)
    with BadProxy(raw.server.url, first()) as proxy:
        LiveUsage(PrometheusConnection(proxy.url, options), options.templates, window_seconds=300).read()
        asked = [parse_qs(urlsplit(path).query) for path in proxy.requests]
    rates = {"node_cpu_seconds_total": ["false"], "node_network": ["false"], "node_disk": None, "timestamp": None}
    for text, dedup in rates.items():
        [one] = [each for each in asked if text in each["query"][0]]
        assert one.get("dedup") == dedup, text


def test_a_query_that_names_no_node_or_one_twice_is_refused(raw: Now) -> None:
    with pytest.raises(ForecastError, match="without the label node"):
        raw.read(queries=Queries(node_cpu="vector(1)"))
    twice = Queries(node_memory='label_replace(node_memory_MemTotal_bytes, "node", "n1", "", "")')
    with pytest.raises(ForecastError, match="2 series for node n1"):
        raw.read(queries=twice)


def test_raw_series_have_no_history(raw: Now) -> None:
    until = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    assert np.isnan(_live(raw.server.url).node_history(["10.0.0.1"], until - timedelta(hours=2), until)).all()
