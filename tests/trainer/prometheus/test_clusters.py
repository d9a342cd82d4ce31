"""One cluster or several: what their facts say, from label sets alone, and how a real server with two is read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from base.errors import InputError
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer, promtool
from tests.trainer.prometheus.scrapes import DAY, HOUR, MINUTE, frame, options_day_end, when
from tests.trainer.prometheus.small_server import small_cluster
from trainer.prometheus.clusters import Labels, SeenClusters, several_clusters
from trainer.prometheus.live_usage import LiveUsage
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.queries import Queries
from trainer.prometheus.recording_rules import rule_file


def _nodes(first: int = 1, last: int = 6, net: str = "10.0.0", uuid: str = "a", **labels: str) -> list[Labels]:
    """kube_node_info of some nodes. uuid: "" = the exporter does not say."""
    common = {"job": "kube-state-metrics", "instance": "10.9.9.9:8080", "kubelet_version": "v1.36.2", **labels}
    return [
        {
            "node": f"node-{number}",
            "internal_ip": f"{net}.{number}",
            "system_uuid": uuid and f"{uuid}-{number}",
            **common,
        }
        for number in range(first, last + 1)
    ]


def _targets(*nodes: Sequence[Labels]) -> list[Labels]:
    """What other series of the same scrapes have."""
    own = {"node", "internal_ip", "system_uuid", "kubelet_version", "odd"}
    return [{name: value for name, value in one.items() if name not in own} for part in nodes for one in part]


_OTHER: Mapping[str, Any] = {"net": "10.8.0", "uuid": "b"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"prometheus_replica": "k8s-0"}, {"prometheus_replica": "k8s-1"}),
        ({"receive_replica": "a", "replica": "0"}, {"receive_replica": "b", "replica": "1"}),
        ({"prometheus": "monitoring/k8s"}, {"prometheus": "other/k8s"}),
        ({"instance": "10.1.1.1:8080", "pod": "ksm-0"}, {"instance": "10.1.1.2:8080", "pod": "ksm-1"}),
        ({"team": "a"}, {"team": "b"}),  # any label, as long as both say the same
        ({"cluster": "eu"}, {}),  # scraped twice, by one who knows the cluster's name and by one who does not
        ({"cluster": "eu-a"}, {"cluster": "eu-b"}),  # the same machines
        ({"uuid": "", "replica": "0"}, {"uuid": "", "replica": "1"}),
    ],
)
def test_two_that_say_the_same_of_all_nodes_are_one_cluster(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    nodes = [*_nodes(**one), *_nodes(**other)]
    created = [{"created": "1700000000"}, {"created": "1700000000"}]
    assert several_clusters(SeenClusters(nodes, nodes, created, targets=_targets(nodes)), {}) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"instance": "10.1.1.1:8080", "pod": "ksm-0"}, {"instance": "10.1.1.2:8080", "pod": "ksm-1"}),
        ({"shard": "0"}, {"shard": "1"}),
        ({"statefulset_kubernetes_io_pod_name": "ksm-0"}, {"statefulset_kubernetes_io_pod_name": "ksm-1"}),
        ({"prometheus_replica": "k8s-shard-0"}, {"prometheus_replica": "k8s-shard-1"}),
    ],
)
def test_shards_that_list_other_nodes_are_one_cluster(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    nodes = [*_nodes(1, 3, **one), *_nodes(4, 6, **other)]
    assert several_clusters(SeenClusters(nodes, nodes, targets=_targets(nodes)), {}) is None


@pytest.mark.parametrize(
    ("one", "other", "label", "values"),
    [
        ({"cluster": "eu"}, {**_OTHER, "cluster": "us"}, "cluster", "eu, us"),
        # Nothing but the label says so: shops with the same names and addresses.
        ({"k8s_cluster": "s1", "uuid": ""}, {"k8s_cluster": "s2", "uuid": ""}, "k8s_cluster", "s1, s2"),
        ({"cluster": "eu"}, {"first": 7, "last": 9, "cluster": "us"}, "cluster", "eu, us"),
        ({"region": "eu"}, {"first": 7, "last": 9, "region": "us"}, "region", "eu, us"),
        ({"prometheus": "eu/k8s"}, {**_OTHER, "prometheus": "us/k8s"}, "prometheus", "eu/k8s, us/k8s"),
        ({"cluster": "eu", "env": "a"}, {**_OTHER, "cluster": "us", "env": "b"}, "cluster", "eu, us"),
        ({}, {**_OTHER, "cluster": "us"}, "cluster", "us, none"),  # the hub's own cluster has no label
    ],
)  # fmt: skip
def test_a_label_that_tells_clusters_apart_is_named_with_its_values(
    one: Mapping[str, Any], other: Mapping[str, Any], label: str, values: str
) -> None:
    nodes = [*_nodes(**one), *_nodes(**other)]
    said = several_clusters(
        SeenClusters(nodes, nodes, targets=_targets(nodes)), {"env": "prod"} if label == "region" else {}
    )
    way_out = f"{'env: prod, ' if label == 'region' else ''}{label}: {values.split(',')[0]}"
    assert said == (
        f"the server holds 2 values of the label {label}: {values}; choose one with prometheus.cluster: {{{way_out}}}"
    )


def test_where_node_facts_are_missing_the_label_of_other_series_tells() -> None:
    targets = [{"cluster": "eu", "job": "kubelet"}, {"cluster": "us"}, {"cluster": "eu", "job": "node-exporter"}]
    said = several_clusters(SeenClusters(nodes=[], targets=targets), {})
    assert said is not None and "2 values of the label cluster: eu, us" in said
    assert several_clusters(SeenClusters(nodes=[], targets=targets), {"cluster": "eu"}) is None
    # Labels of nodes differ on series of nodes.
    zones = [{"topology_kubernetes_io_zone": zone, "eks_nodegroup": zone} for zone in ("a", "b")]
    assert several_clusters(SeenClusters(nodes=[], targets=zones), {}) is None


def test_a_fact_of_nodes_that_we_do_not_know_is_no_label_of_a_cluster() -> None:
    nodes = [{**node, "odd": node["node"]} for node in _nodes()]
    assert several_clusters(SeenClusters(nodes, nodes, targets=_targets(nodes)), {}) is None


def test_without_a_label_facts_that_contradict_each_other_tell() -> None:
    both = [*_nodes(), *_nodes(**_OTHER)]
    said = several_clusters(SeenClusters(both, both), {})
    assert said is not None and said.startswith("two clusters answer behind this server, and no label tells them apart")
    assert "6 of 6 nodes have two addresses at the same time, for instance node-1 has 10.0.0.1 and 10.8.0.1" in said
    assert "external_labels" in said
    machines = [*_nodes(), *_nodes(uuid="b")]
    assert "6 of 6 nodes have two machines" in str(several_clusters(SeenClusters(machines, machines), {}))
    created = [{"created": "1700000000"}, {"created": "1710000000"}]
    assert "kube-system was created at 1700000000 and at 1710000000" in str(
        several_clusters(SeenClusters([], [], created), {})
    )
    twice = [{"namespace": "shop", "pod": f"db-{number}"} for number in range(12)]
    said = str(several_clusters(SeenClusters([], twice=twice), {}))
    assert "with two uids or on two nodes, for instance shop/db-0, shop/db-1" in said
    assert said.endswith("an instance of kube-state-metrics is stuck: restart it")


def test_what_passes_or_happens_once_is_no_cluster() -> None:
    rebuilt = [*_nodes(), *_nodes(6, 6, **_OTHER)]
    assert several_clusters(SeenClusters(rebuilt, _nodes()), {}) is None
    assert several_clusters(SeenClusters(rebuilt, rebuilt), {}) is None  # an exporter that is stuck
    all_rebuilt = [*_nodes(), *_nodes(**_OTHER)]
    assert several_clusters(SeenClusters(all_rebuilt, _nodes()), {}) is None
    assert several_clusters(SeenClusters([], twice=[{"namespace": "shop", "pod": "db-0"}]), {}) is None


def test_a_node_label_that_names_the_exporter_s_node_is_another_fault() -> None:
    bent = [{**node, "node": where} for node in _nodes() for where in ("node-2", "node-3")]
    assert several_clusters(SeenClusters(bent, bent), {}) is None


# -- a real server ---------------------------------------------------------------------------------------------------


def _relabelled(
    series: Sequence[MetricSeries], factor: float = 1.0, net: str = "", **labels: str
) -> list[MetricSeries]:
    """The same of another scrape: labels in addition; factor: of all CPU; net: other addresses and uids."""
    out = []
    for one in series:
        old = dict(one.labels)
        if net:
            old |= {key: old[key].replace("10.0.0.", net) for key in ("internal_ip",) if key in old}
            old |= {"uid": old["uid"] + net} if "uid" in old else {}
        values = one.values * factor if "cpu" in one.name and one.name.endswith("_total") else one.values
        out.append(replace(one, labels=old | labels, values=values))
    return out


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Two clusters with the same names; pods and nodes of us use three times the CPU."""
    series, directory = small_cluster(), tmp_path_factory.mktemp("two")
    us = _relabelled(series, 3.0, "10.8.0.", cluster="us")
    write_blocks([*_relabelled(series, cluster="eu"), *us], directory)
    with PrometheusServer(directory) as server:
        yield server


def _source(server: PrometheusServer, **cluster: str) -> PrometheusSource:
    return PrometheusSource(_connection(server, **cluster))


def _connection(server: PrometheusServer, **cluster: str) -> PrometheusConnection:
    return PrometheusConnection(server.url, ConnectionOptions(cluster=cluster))


def test_two_clusters_are_refused_until_one_is_chosen(two: PrometheusServer) -> None:
    now = datetime.now(UTC)
    with pytest.raises(InputError, match=r"2 values of the label cluster: eu, us; choose .* {cluster: eu}$"):
        _source(two).check(now)
    assert _source(two, cluster="eu").check(now)  # remarks
    with pytest.raises(InputError, match=r"has cluster=ap, .* the server has cluster=eu, cluster=us; choose one"):
        _source(two, cluster="ap").check(now)
    with pytest.raises(InputError, match="no series of kube_pod_info has the label region"):
        _source(two, region="eu").check(now)


@pytest.mark.parametrize(("cluster", "factor"), [("eu", 1.0), ("us", 3.0)])
def test_only_the_cluster_that_was_chosen_is_read(two: PrometheusServer, cluster: str, factor: float) -> None:
    source = _source(two, cluster=cluster)
    assert source.days_with_data(DAY, options_day_end()) == (DAY,)
    read = source.read_day(DAY, options_day_end())
    usage, nodes = when(frame(read.usage), HOUR, 3 * HOUR), when(frame(read.nodes), HOUR, 3 * HOUR)
    assert usage[usage["pod"] == "pod-2"].cpu_cores.to_numpy() == pytest.approx(factor)
    assert sorted(set(nodes["node"])) == ["n1", "n2", "n3"]
    assert nodes.cpu_cores.to_numpy() == pytest.approx(3 * factor)


def test_rules_for_each_of_them_record_what_its_services_read(two: PrometheusServer, tmp_path: Path) -> None:
    for cluster in ("eu", "us"):  # a central ruler
        rules = tmp_path / f"{cluster}.yaml"
        rules.write_text(yaml.safe_dump(rule_file(cluster={"cluster": cluster})))
        times = ("--start=2026-03-02T00:00:00Z", "--end=2026-03-02T01:00:00Z")
        places = (f"--url={two.url}", f"--output-dir={tmp_path / cluster}")
        promtool("tsdb", "create-blocks-from", "rules", *times, *places, rules)
    two.stop()
    for block in (one for cluster in ("eu", "us") for one in (tmp_path / cluster).iterdir()):
        shutil.move(block, two.blocks / block.name)
    two.start()
    read = _source(two, cluster="us").read_day(DAY, options_day_end())
    assert read.recorded_share == pytest.approx(0.25, abs=0.03)  # one of four hours
    usage = when(frame(read.usage), 5 * MINUTE, 3 * HOUR)
    assert usage[usage["pod"] == "pod-2"].cpu_cores.to_numpy() == pytest.approx(3.0)
    live = LiveUsage(_connection(two, cluster="us"), Queries(), window_seconds=300)
    since = datetime.combine(DAY, time(), UTC) + timedelta(minutes=30)
    [[cores]] = live.node_history(["n1"], since, since + timedelta(minutes=30))[:1]
    assert cores == pytest.approx(9.0)


def _of_machine(one: MetricSeries, cluster: str) -> MetricSeries:
    """The same of a machine outside, which belongs to another sort of cluster."""
    labels = dict(one.labels) | {
        "set": "databases",
        "cluster": cluster,
        "instance": f"db-{one.labels['instance']}.example.org",
    }
    return replace(one, labels=labels)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Sets of series behind one server, told apart by the label set, each like a server of its own."""
    series, directory = small_cluster(), tmp_path_factory.mktemp("several")
    half = [one for one in series if one.labels.get("node") != "n1"]
    rest = [one for one in series if one.labels.get("node") == "n1" and one.name.startswith("kube_")]
    write_blocks(
        [
            *(one for replica in ("0", "1") for one in _relabelled(series, set="pair", prometheus_replica=replica)),
            *_relabelled(half, set="shards", shard="0"),
            *_relabelled(rest, set="shards", shard="1"),
            *_relabelled(series, set="databases"),
            *(
                _of_machine(one, "pg" if one.labels["instance"] == "n1" else "ceph")
                for one in series
                if one.name.startswith("node_") and one.labels["instance"] in ("n1", "n2")
            ),
            *_relabelled(series, set="untold", job="a"),
            *_relabelled(series, 3.0, "10.8.0.", set="untold", job="b"),
        ],
        directory,
    )
    with PrometheusServer(directory) as server:
        yield server


def test_replicas_and_shards_are_read_as_one_cluster(several: PrometheusServer) -> None:
    now = datetime.now(UTC)
    for which in ("pair", "shards"):
        assert _source(several, set=which).check(now)
    pair = _source(several, set="pair").read_day(DAY, options_day_end())
    usage = when(frame(pair.usage), HOUR, 3 * HOUR)
    assert usage[usage["pod"] == "pod-2"].cpu_cores.to_numpy() == pytest.approx(1.0)


def test_clusters_of_databases_outside_are_none_of_kubernetes(several: PrometheusServer) -> None:
    assert _source(several, set="databases").check(datetime.now(UTC))


def test_two_clusters_that_no_label_tells_apart_are_refused(several: PrometheusServer) -> None:
    with pytest.raises(InputError, match="no label tells them apart: 3 of 3 nodes have two addresses"):
        _source(several, set="untold").check(datetime.now(UTC))
