"""The metrics store of `make cluster`: which program it is, what it holds and scrapes, and its Service in the cluster.

Store.PROMETHEUS        Prometheus with our rules
Store.VICTORIAMETRICS   a single node, which evaluates no rules
Store.THANOS            a querier over a Prometheus for each cluster, whose external labels name it
Store.TOKEN             Prometheus behind a gateway that asks for a bearer token
Store.NONE              no store
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testing.servers.bad_proxy import BadProxy
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer, free_port
from testing.servers.proxied_service import proxied_service
from testing.servers.stores.thanos import REPLICA_LABEL, Thanos
from testing.servers.stores.victoria_metrics import VictoriaMetrics

CLUSTER_LABEL: Final = "cluster"
NAMESPACE: Final = "monitoring"
TOKEN: Final = "open-sesame"
"""What the gateway of Store.TOKEN asks for: a secret of nothing."""


class Store(Enum):
    """Which metrics store runs in the local cluster: the values of `--store`."""

    PROMETHEUS = "prometheus"
    VICTORIAMETRICS = "victoriametrics"
    THANOS = "thanos"
    TOKEN = "token"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Fed:
    """What a store gets of one cluster: its history, and what is scraped from now on.

    cluster : value of CLUSTER_LABEL, "" = its series have no such label
    """

    cluster: str
    series: Sequence[MetricSeries]
    scrapes: Sequence[Mapping[str, Any]]

    @property
    def labels(self) -> dict[str, str]:
        return {CLUSTER_LABEL: self.cluster} if self.cluster else {}


@dataclass(frozen=True, slots=True)
class _Installed:
    """As a chart or operator names the Service, and the port."""

    service: str
    port: int
    labels: Mapping[str, str]


_PROMETHEUS: Final = _Installed(
    "prometheus-k8s", 9090, {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "prometheus"}
)
_INSTALLED: Final = {
    Store.PROMETHEUS: _PROMETHEUS,
    Store.TOKEN: _PROMETHEUS,
    Store.VICTORIAMETRICS: _Installed(
        "vmsingle-victoria-metrics", 8428, {"app.kubernetes.io/name": "vmsingle", "managed-by": "vm-operator"}
    ),
    Store.THANOS: _Installed(
        "thanos-query", 9090, {"app.kubernetes.io/name": "thanos-query", "app.kubernetes.io/component": "query-layer"}
    ),
}


def start_store(
    kind: Store, fed: Sequence[Fed], directory: Path, *, rules: Sequence[Path], port: int, stack: ExitStack
) -> str:
    """Start it with its history; returns its URL, "" = there is none.

    rules : that a Prometheus evaluates; port: where a Prometheus listens, the others take a free one
    """
    if kind is Store.NONE:
        return ""
    if kind is Store.THANOS:
        replicas = []
        for number, one in enumerate(fed):
            write_blocks(one.series, blocks := directory / f"prometheus-{number}")
            external = one.labels | {REPLICA_LABEL: str(number)}
            server = PrometheusServer(blocks, rule_files=rules, scrapes=one.scrapes, external_labels=external)
            replicas.append(stack.enter_context(server))
        return stack.enter_context(Thanos(replicas, directory / "thanos")).url
    series = [replace(of, labels={**of.labels, **one.labels}) for one in fed for of in one.series]
    scrapes = [_labelled(scrape, one) for one in fed for scrape in one.scrapes]
    if kind is Store.VICTORIAMETRICS:
        store = stack.enter_context(VictoriaMetrics(directory / "victoria-metrics", scrapes=scrapes))
        store.load(series)
        return store.url
    write_blocks(series, blocks := directory / "prometheus")
    guarded = kind is Store.TOKEN
    listens = free_port() if guarded else port
    server = stack.enter_context(PrometheusServer(blocks, rule_files=rules, scrapes=scrapes, port=listens))
    return stack.enter_context(BadProxy(server.url, authorization=f"Bearer {TOKEN}")).url if guarded else server.url


def offer_store(kind: Store, url: str, writer: ClusterWriter, *, node: str, stack: ExitStack) -> str:
    """Make the store a Service of a cluster, reached through its API server; returns namespace/name:port."""
    installed = _INSTALLED[kind]
    writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    place, server_port = f"{NAMESPACE}/{installed.service}", urlsplit(url).port
    assert server_port is not None
    stack.enter_context(proxied_service(writer, place, installed.port, server_port, installed.labels, node=node))
    return f"{place}:{installed.port}"


def _labelled(scrape: Mapping[str, Any], fed: Fed) -> dict[str, Any]:
    """Two jobs may not have one name, and each target gets the cluster's label."""
    if not fed.cluster:
        return dict(scrape)
    targets = [{**one, "labels": fed.labels} for one in scrape["static_configs"]]
    return {**scrape, "job_name": f"{scrape['job_name']}-{fed.cluster}", "static_configs": targets}
