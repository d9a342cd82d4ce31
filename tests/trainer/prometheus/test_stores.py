"""One cluster in four stores: what is learned from each, found in it and shown of it is the same within 1 %.

The first is Debian's Prometheus. Thanos has two replicas, one of which was down for an hour. All but the first also
hold names in UTF-8, which no Prometheus before version 3 could have scraped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from base.arrays import Floats
from cluster.live.usage import NodeUsage
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from forecast_scheduler.cli import run
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage
from testing.measured_cluster.cluster import STEP, Cluster, make_cluster
from testing.measured_cluster.exporters import node_series, pod_series
from testing.measured_cluster.recorded import recorded_series
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from testing.servers.stores.programs import prometheus_3, promtool_3
from testing.servers.stores.thanos import REPLICA_LABEL, Thanos
from testing.servers.stores.victoria_metrics import VictoriaMetrics
from trainer.prometheus.live_usage import LiveUsage
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.queries import Queries

FIRST: Final = "Prometheus 2"
OTHERS: Final = ("Prometheus 3", "VictoriaMetrics", "Thanos")
SAME: Final = 0.01
SAME_NOW: Final = {"Prometheus 3": SAME, "VictoriaMetrics": 0.03, "Thanos": SAME}
"""The five minutes of VictoriaMetrics begin with the scrape before them, and load changes meanwhile."""

DAYS: Final = 2
"""Whole days before today, of which there is a part, too."""
AHEAD: Final = 1200
"""Seconds for which there are samples still to come: to a server its series look like scraped ones."""
RECORDED_HOURS: Final = 6

_AT_ONCE: Final = "-search.latencyOffset=0s"
"""By default VictoriaMetrics hides the samples of the last 30 s: what is used now is that much older."""
_HOUR: Final = 3600
_COLUMNS: Final = [resource.column for resource in RESOURCES]
_SERVICES: Final = (
    ServiceKey("shop", "Deployment", "app-00"),
    ServiceKey("data", "StatefulSet", "db-0"),
    ServiceKey("pay", "Deployment", "app-01"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of one store.

    usage, nodes : tables of the history
    requests     : table of its pods
    findings     : of doctor, by name
    live         : usage of nodes by recording rules, and of raw series
    shown        : past of nodes and services, as the scorer's page has it: (n_resources, n_slots) each
    """

    usage: pd.DataFrame
    nodes: pd.DataFrame
    requests: pd.DataFrame
    findings: Mapping[str, Any]
    live: tuple[NodeUsage, NodeUsage]
    shown: Sequence[Floats]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Four servers by name."""
    place = tmp_path_factory.mktemp("stores")
    now = int(time.time())
    start = datetime.now(UTC).date() - timedelta(days=DAYS)
    cluster = _quiet_now(make_cluster(n_days=DAYS + 2, start=start, noise=0.01), now)
    every = [*pod_series(cluster), *node_series(cluster), *recorded_series(cluster, now - RECORDED_HOURS * _HOUR)]
    every = _sampled(every, now + AHEAD)
    utf8 = _with_utf8(every)
    # The other replica scrapes a bit later, and is the one that was up at noon of the first day.
    noon = cluster.start + 12 * _HOUR
    replicas = {"a": _sampled(utf8, now + AHEAD, down=noon), "b": _sampled(utf8, now + AHEAD, later=7)}

    write_blocks(every, place / "2")
    _write_both(utf8, place / "3")
    for name, series in replicas.items():
        _write_both(series, place / name)
    with ExitStack() as stack:

        def prometheus(blocks: Path, **labels: str) -> PrometheusServer:
            server = PrometheusServer(blocks, program=prometheus_3(), external_labels=labels)
            return stack.enter_context(server)

        victoria = stack.enter_context(VictoriaMetrics(place / "victoria", [_AT_ONCE]))
        victoria.load(utf8)
        pair = [prometheus(place / name, **{REPLICA_LABEL: name}) for name in replicas]
        yield {
            FIRST: stack.enter_context(PrometheusServer(place / "2")).url,
            "Prometheus 3": prometheus(place / "3").url,
            "VictoriaMetrics": victoria.url,
            "Thanos": stack.enter_context(Thanos(pair, place / "thanos")).url,
        }


@pytest.fixture(scope="module")
def readings(urls: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Reading]:
    # What is used now is asked of all of them in the same seconds.
    live = {name: (_source(url).read(), _source(url, recording_rules=False).read()) for name, url in urls.items()}
    return {
        name: _reading(url, tmp_path_factory.mktemp(name.replace(" ", "-")), live[name]) for name, url in urls.items()
    }


@pytest.mark.parametrize("store", OTHERS)
def test_the_history_is_the_same(readings: Mapping[str, Reading], store: str) -> None:
    first, other = readings[FIRST], readings[store]
    assert len(first.usage) > 20_000
    _same_rows(first.usage, other.usage)
    _same_rows(first.nodes, other.nodes)
    for keys in (["namespace", "service"], ["node"]):
        _same(first.usage.groupby(keys)[_COLUMNS].sum(), other.usage.groupby(keys)[_COLUMNS].sum())
    _same(first.nodes.groupby("node")[_COLUMNS].mean(), other.nodes.groupby("node")[_COLUMNS].mean())
    # A gap begins and ends with the same half hours, and nothing in it looks idle.
    for one, same in ((first.usage, other.usage), (first.nodes, other.nodes)):
        assert _quantile_of_half_hours(one, same, 0.5) < SAME
        # Where pods begin or end VictoriaMetrics smears the step over one scrape more.
        assert _quantile_of_half_hours(one, same, 0.99) < 0.03
        assert _quantile_of_half_hours(one, same, 1.0) < 0.15
    pd.testing.assert_frame_equal(first.requests, other.requests)


@pytest.mark.parametrize("store", OTHERS)
def test_the_findings_are_the_same(readings: Mapping[str, Reading], store: str) -> None:
    first, other = readings[FIRST].findings, readings[store].findings
    assert first.keys() == other.keys()
    for name, finding in first.items():
        for count in ("services", "nodes"):
            assert finding[count] == other[name][count], name
        share, other_share = (pd.Series(one["load_share"], dtype=float) for one in (finding, other[name]))
        pd.testing.assert_series_equal(other_share, share, rtol=SAME)


@pytest.mark.parametrize("store", OTHERS)
def test_what_nodes_use_now_is_the_same(readings: Mapping[str, Reading], store: str) -> None:
    for first, other in zip(readings[FIRST].live, readings[store].live, strict=True):
        assert first.nodes == other.nodes
        np.testing.assert_allclose(other.usage, first.usage, rtol=SAME_NOW[store])
        # The querier may have the sample of the other replica.
        assert np.nanmax(np.abs(other.sampled - first.sampled), initial=0) <= 7


@pytest.mark.parametrize("store", OTHERS)
def test_what_the_page_shows_is_the_same(readings: Mapping[str, Reading], store: str) -> None:
    for first, other in zip(readings[FIRST].shown, readings[store].shown, strict=True):
        assert np.isfinite(first).sum() > len(RESOURCES) * 6
        np.testing.assert_allclose(other, first, rtol=SAME)


def _source(url: str, *, recording_rules: bool = True) -> PrometheusUsage:
    live = LiveUsage(PrometheusConnection(url), Queries(), window_seconds=300, recording_rules=recording_rules)
    return PrometheusUsage(live)


def _reading(url: str, place: Path, live: tuple[NodeUsage, NodeUsage]) -> Reading:
    history, figures = place / "history", place / "doctor.json"
    arguments = ["--history", str(history), "--models", str(place / "models"), "--days", str(DAYS)]
    assert run(["train", "--prometheus", url, *arguments]) == 0
    assert run(["doctor", "--history", str(history), "--json", str(figures)]) == 0
    until = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    since, source = until - timedelta(hours=RECORDED_HOURS), _source(url)
    shown = [source.node_history([f"node-{number}"], since, until) for number in range(3)]
    shown += [source.service_history(service, [], since, until) for service in _SERVICES]
    return Reading(
        usage=_table(history, "usage"),
        nodes=_table(history, "nodes"),
        requests=_table(history, "pods").drop_duplicates().sort_values(["namespace", "pod"], ignore_index=True),
        findings={one["finding"]: one for one in json.loads(figures.read_text())["findings"]},
        live=live,
        shown=shown,
    )


def _table(history: Path, name: str) -> pd.DataFrame:
    table = pd.concat([pd.read_parquet(file) for file in sorted((history / f"{name}.parquet").glob("*.parquet"))])
    texts = table.columns.intersection(["namespace", "service", "pod", "node"])
    return table.astype(dict.fromkeys(texts, str))


def _same_rows(first: pd.DataFrame, other: pd.DataFrame) -> None:
    keys = [name for name in first.columns if name not in _COLUMNS]
    both = first[keys].merge(other[keys], how="inner")
    assert len(both) > (1 - SAME) * max(len(first), len(other))


def _same(first: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(other, first, rtol=SAME, check_dtype=False)


def _quantile_of_half_hours(first: pd.DataFrame, other: pd.DataFrame, quantile: float) -> float:
    """How much the means of half hours of each pod or node differ."""
    keys = [name for name in first.columns if name not in (*_COLUMNS, "timestamp")]
    means = [
        one.groupby([*keys, one["timestamp"].dt.floor("30min")])[_COLUMNS].mean().stack() for one in (first, other)
    ]
    return float(np.nanquantile(np.abs(means[1] / means[0] - 1), quantile))


def _quiet_now(cluster: Cluster, now: int) -> Cluster:
    """The same without the pods that come or go within an hour: a store may answer about a minute or a tick ago."""
    first, last = ((now + beside * _HOUR - cluster.start) // STEP for beside in (-1, 1))
    lives = [one for one in cluster.lives if not any(first < tick < last for tick in (one.begin, one.end))]
    return replace(cluster, lives=tuple(lives))


def _sampled(
    series: Sequence[MetricSeries], until: int, *, later: int = 0, down: int | None = None
) -> list[MetricSeries]:
    """What of it was scraped before `until`, some seconds later, and not in the hour from `down` on."""
    found = []
    for one in series:
        times = one.times + later
        kept = times < until
        if down is not None:
            kept &= (times < down) | (times >= down + _HOUR)
        found.append(MetricSeries(one.name, one.labels, times[kept], one.values[kept]))
    return [one for one in found if len(one.times)]


def _with_utf8(series: Sequence[MetricSeries]) -> list[MetricSeries]:
    """The same, the pods of a StatefulSet with a label that has dots and a slash; and a metric that we do not read."""
    dotted = {"app.kubernetes.io/name": "db"}
    marked = [
        MetricSeries(one.name, {**one.labels, **dotted}, one.times, one.values)
        if one.labels.get("pod", "").startswith("db-0-")
        else one
        for one in series
    ]
    longest = max(series, key=lambda one: len(one.times))
    foreign = MetricSeries("http.server/active requests", {"k8s.pod/name": "cart"}, longest.times, longest.values)
    return [*marked, foreign]


def _write_both(series: Sequence[MetricSeries], blocks: Path) -> None:
    """Blocks of Debian's promtool, and of that of Prometheus 3 what the first cannot write."""
    write_blocks([one for one in series if not one.is_utf8], blocks)
    write_blocks([one for one in series if one.is_utf8], blocks, program=promtool_3())
