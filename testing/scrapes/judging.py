"""Reads a scrape as the trainer does, and compares the tables with the truth of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from base.errors import InputError
from forecast.resources import RESOURCES
from testing.scrapes.cluster import (
    CORES,
    MEMORY_BYTES,
    N_TICKS,
    RESERVED_BYTES,
    RESERVED_CORES,
    SPEED,
    STEP_SECONDS,
    Cluster,
)
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from trainer.prometheus.day_reading import read_day
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.query_times import DayGrid

_TOLERANCE, _LEAST_MEASURED = 0.05, 0.9


@dataclass(frozen=True, slots=True)
class Reading:
    """refused: the sentence, "" = read. findings: what is said to be wrong or missing; notes: how it was read.

    differences : figures that are not the truth, or missing
    """

    refused: str = ""
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    def says(self, text: str) -> bool:
        """Whether the refusal, a finding or a note contains a text."""
        return any(text in one for one in (self.refused, *self.findings, *self.notes))


def read(cluster: Cluster, series: Sequence[MetricSeries], directory: Path) -> Reading:
    """Check and read a day from a real Prometheus that holds these series. directory: of its data, empty."""
    # Of two series with the same labels a scrape keeps the first.
    unique = {(one.prefix, one.times[0]): one for one in reversed(series) if len(one.times)}
    write_blocks(list(unique.values())[::-1], directory)
    grid = DayGrid.ending(datetime.fromtimestamp(cluster.end, UTC), STEP_SECONDS, N_TICKS)
    with PrometheusServer(directory) as server:
        connection = PrometheusConnection(server.url)
        try:
            findings = PrometheusSource(connection).check(datetime.now(UTC))
            tables = read_day(connection, SourceOptions(), grid)
        except InputError as error:
            return Reading(refused=str(error))
    wrong = [remark.text for remark in tables.remarks if remark.wrong]
    notes = tuple(remark.text for remark in tables.remarks if not remark.wrong)
    return Reading("", (*findings, *wrong), notes, tuple(differences(cluster, tables)))


def differences(cluster: Cluster, tables: DayTables) -> Iterator[str]:
    """Sentences about every service, node and resource of which the tables do not tell the truth."""
    yield from _pods(cluster, tables)
    yield from _nodes(cluster, tables)


def _pods(cluster: Cluster, tables: DayTables) -> Iterator[str]:
    usage, asked = _frame(tables.usage), _frame(tables.pods)
    columns = [resource.column for resource in RESOURCES]
    requests = ["request_cpu_cores", "request_memory_bytes"]
    truth = pd.DataFrame(
        [
            [
                f"{pod.namespace}/{pod.top}",
                pod.node.name,
                *pod.usage[:3],
                np.nan if pod.host_network else pod.usage[3],
                pod.usage[4],
                *np.sum(list(pod.asks.values()), axis=0),
            ]
            for pod in cluster.pods
        ],
        columns=["service", "node", *columns, *requests],
    )
    usage["service"], asked["service"] = (
        usage["namespace"] + "/" + usage["service"],
        asked["namespace"] + "/" + asked["service"],
    )
    yield from _sets("services", set(usage["service"]), set(truth["service"]))
    yield from _sets("nodes with pods", set(usage["node"]), set(truth["node"]))
    of_service, expected = usage.groupby("service"), truth.groupby("service")
    known, means = usage[columns].notna().groupby(usage["service"]).mean(), of_service[columns].mean()
    n_pods, expected_pods = of_service.size() / usage["timestamp"].nunique(), expected.size()
    for service in sorted(set(usage["service"]) & set(truth["service"])):
        yield from _figure(f"pods of {service}", n_pods[service], float(expected_pods[service]))
        for column in columns:
            found = means[column][service] if known[column][service] >= _LEAST_MEASURED else np.nan
            yield from _figure(f"{column} of a pod of {service}", found, expected[column].mean()[service])
        for column in requests:
            found = asked.groupby("service")[column].mean().get(service, np.nan)
            yield from _figure(f"{column} of {service}", found, expected[column].mean()[service])


def _nodes(cluster: Cluster, tables: DayTables) -> Iterator[str]:
    nodes, capacity = _frame(tables.nodes), _frame(tables.capacity).set_index("node")
    names = {node.name for node in cluster.nodes}
    yield from _sets("nodes", set(capacity.index), names)
    yield from _sets("measured nodes", set(nodes["node"]), names)
    limits = {"cpu_cores": CORES, "memory_bytes": MEMORY_BYTES, "network_bytes_per_second": SPEED}
    limits |= {
        "allocatable_cpu_cores": CORES - RESERVED_CORES,
        "allocatable_memory_bytes": MEMORY_BYTES - RESERVED_BYTES,
    }
    for node in cluster.nodes:
        rows = nodes[nodes["node"] == node.name]
        for resource, truth in zip(RESOURCES, cluster.node_usage(node).tolist(), strict=True):
            measured = rows[resource.column].notna().sum() / max(1, nodes["timestamp"].nunique())
            found = rows[resource.column].mean() if measured >= _LEAST_MEASURED else np.nan
            yield from _figure(f"{resource.column} of {node.name}", found, truth)
        for column, truth in limits.items():
            found = capacity[column].get(node.name, np.nan)
            yield from _figure(f"capacity {column} of {node.name}", found, truth)


def _figure(what: str, found: float, truth: float) -> Iterator[str]:
    if np.isnan(found) and np.isnan(truth):
        return
    if not abs(found - truth) <= _TOLERANCE * abs(truth):
        yield f"{what}: {'unknown' if np.isnan(found) else f'{found:.4g}'} instead of {truth:.4g}"


def _sets(what: str, found: set[str], truth: set[str]) -> Iterator[str]:
    if found != truth:
        yield f"{what}: {sorted(found - truth)[:3]} too much, {sorted(truth - found)[:3]} missing"


def _frame(table: object) -> pd.DataFrame:
    data: pd.DataFrame = table.to_pandas()  # type: ignore[attr-defined]
    for column in {"namespace", "service", "pod", "node"} & set(data.columns):
        data[column] = data[column].astype(str)
    return data
