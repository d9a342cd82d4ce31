"""Bodies of /metrics that other people's clusters gave, loaded into a Prometheus and read; for benchmarks.shapes.

A body is one moment. Its counters rise from 0 to their value over 1,000 s, gauges are constant. Where a body names pods
and no kube_pod_info lists them, kube_pod_info is made for each, running on the node that the body names, or node-1.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from base.errors import InputError
from forecast.resources import RESOURCES
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from trainer.prometheus.day_reading import read_day
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.query_times import DayGrid

_SECONDS, _SCRAPE, _STEP, _TICKS = 1000, 50, 300, 3
_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([A-Za-z_][\w.]*)="((?:[^"\\]|\\.)*)"')
_COUNTERS = re.compile(r".*_total|node_cpu|node_(disk|network)_.*bytes.*|promtail_read_bytes_total|.*_seconds_total")
_UID = re.compile(r"pod([0-9a-f]{8})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{12})")

Body = list[tuple[str, dict[str, str], float]]


@dataclass(frozen=True, slots=True)
class Read:
    """refused or said: sentences. pods, nodes: what is measured, (number, sum of means) by column of the history."""

    refused: str
    said: tuple[str, ...]
    pods: Mapping[str, tuple[int, float]]
    nodes: Mapping[str, tuple[int, float]]
    tables: DayTables | None

    def services(self) -> set[str]:
        """Kind/name of all."""
        return set(_frame(self.tables, "pods")["service"]) if self.tables else set()

    def says(self, text: str) -> bool:
        """Whether a sentence contains a text."""
        return any(text in one for one in (self.refused, *self.said))

    def measured(self, column: str, pod: str) -> float:
        """Mean of a pod, NaN = not measured."""
        usage = _frame(self.tables, "usage")
        return float(usage.loc[usage["pod"].str.startswith(pod), column].mean())

    def requests(self) -> int:
        """How many pods have requests for CPU."""
        return int(_frame(self.tables, "pods")["request_cpu_cores"].notna().sum())

    def capacity(self) -> int:
        """How many nodes have a capacity of CPU."""
        return int(_frame(self.tables, "capacity")["cpu_cores"].notna().sum())


def body_of(path: Path) -> Body:
    """The samples of a body, text or the answer to an instant query."""
    if path.suffix == ".json":
        found = json.loads(path.read_text())["data"]["result"]
        named = [(dict(one["metric"]), float(one["value"][1])) for one in found]
        return [(labels.pop("__name__"), labels, value) for labels, value in named]
    body: Body = []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not (found := _LINE.fullmatch(line)):
            continue
        labels = {name.replace(".", "_"): value for name, value in _LABEL.findall(found[2] or "") if value}
        body.append((found[1], labels, float(found[3])))
    return body


def read_body(path: Path) -> Read:
    """Load a body and read it as the trainer reads a day."""
    body = body_of(path)
    end = int(datetime.now(UTC).timestamp()) // _STEP * _STEP
    times = np.arange(end - _SECONDS, end + 1, _SCRAPE)
    grown = (times - times[0]) / _SECONDS
    target = {"instance": "10.0.0.1:9100"}
    series: dict[str, MetricSeries] = {}
    for name, labels, value in (*body, *_listed(body)):
        values = value * grown if _COUNTERS.fullmatch(name) else np.full(len(times), value)
        one = MetricSeries(name, target | labels, times, values)
        series.setdefault(one.prefix, one)
    with tempfile.TemporaryDirectory() as directory:
        write_blocks(list(series.values()), Path(directory))
        with PrometheusServer(Path(directory)) as server:
            return _reading(PrometheusConnection(server.url), end)


def _reading(connection: PrometheusConnection, end: int) -> Read:
    said: tuple[str, ...] = ()
    refused = ""
    try:
        said = PrometheusSource(connection).check(datetime.now(UTC))
    except InputError as error:
        refused = str(error).replace(connection.url, "the server")
    grid = DayGrid.ending(datetime.fromtimestamp(end, UTC), _STEP, _TICKS)
    try:
        tables = read_day(connection, SourceOptions(), grid)
    except InputError as error:
        return Read(refused or str(error), said, {}, {}, None)
    remarks = tuple(remark.text for remark in tables.remarks)
    pods, nodes = _measured(tables, "usage", "namespace", "pod"), _measured(tables, "nodes", "node")
    return Read(refused, (*said, *remarks), pods, nodes, tables)


def _measured(tables: DayTables, table: str, *names: str) -> dict[str, tuple[int, float]]:
    means = _frame(tables, table).groupby(list(names))[[r.column for r in RESOURCES]].mean()
    return {column: (int(means[column].notna().sum()), float(means[column].sum())) for column in means.columns}


def _listed(body: Body) -> Body:
    """kube_pod_info and its phase, for pods of which a body has usage alone."""
    if any(name == "kube_pod_info" for name, _, _ in body):
        if any(name == "kube_pod_status_phase" for name, _, _ in body):
            return []
        infos = [labels for name, labels, _ in body if name == "kube_pod_info"]
        return [("kube_pod_status_phase", labels | {"phase": "Running"}, 1.0) for labels in infos]
    pods: dict[tuple[str, str], dict[str, str]] = {}
    for name, labels, _ in body:
        uid = "-".join(found.groups()) if (found := _UID.search(labels.get("id", ""))) else ""
        pod = labels.get("pod") or labels.get("pod_name") or (f"pod-{uid}" if uid else "")
        if name.startswith(("container_", "kubelet_", "pod_")) and pod:
            key = (labels.get("namespace", "default"), pod)
            labels = {"node": labels.get("node", "node-1"), "uid": uid, "created_by_kind": "StatefulSet"}
            pods.setdefault(key, {}).update({k: v for k, v in labels.items() if v})
    uids = {labels.get("uid") for (_, pod), labels in pods.items() if not pod.startswith("pod-")}
    made: Body = []
    for (namespace, pod), labels in pods.items():
        if pod.startswith("pod-") and labels.get("uid") in uids:
            continue
        of_pod = {"namespace": namespace, "pod": pod}
        made.append(("kube_pod_info", of_pod | labels | {"created_by_name": pod}, 1.0))
        made.append(("kube_pod_status_phase", of_pod | {"phase": "Running"}, 1.0))
    return made


def _frame(tables: DayTables | None, name: str) -> pd.DataFrame:
    assert tables is not None
    data: pd.DataFrame = getattr(tables, name).to_pandas()
    return data.astype({c: str for c in ("namespace", "service", "pod", "node") if c in data})


def _counted(kind: str, column: str, number: int, total: float | None = None) -> Callable[[Read], bool]:
    """So many pods or nodes are measured, together with this figure if it is given."""

    def holds(read: Read) -> bool:
        found, sum_ = getattr(read, kind).get(column, (0, 0.0))
        return found == number and (total is None or abs(sum_ - total) <= 0.01 * total)

    return holds


def _all(*rules: Callable[[Read], bool]) -> Callable[[Read], bool]:
    return lambda read: all(rule(read) for rule in rules)


def _says(text: str) -> Callable[[Read], bool]:
    return lambda read: read.says(text)


CPU, MEMORY, DISK, NETWORK, LOG = (resource.column for resource in RESOURCES)

RIGHT: Mapping[str, tuple[str, Callable[[Read], bool]]] = {
    "01": (
        "18 pods, 17 with containers: none of these lacks disk",
        _all(_counted("pods", CPU, 18), _counted("pods", DISK, 17)),
    ),
    "02": ("18 pods run, all requests", lambda read: len(_frame(read.tables, "pods")) == 18),
    "03": ("8 pods, the cores added up", _all(_counted("pods", CPU, 8, 1.478), _counted("pods", MEMORY, 8))),
    "04": ("8 pods, the cores added up", _all(_counted("pods", CPU, 8, 1.478), _counted("pods", MEMORY, 8))),
    "05": (
        "29 pods; host network is not the pods'",
        _all(
            _counted("pods", CPU, 29),
            lambda read: (
                np.isnan(read.measured(NETWORK, "aws-node")) and np.isnan(read.measured(NETWORK, "kube-proxy"))
            ),
        ),
    ),
    "07": (
        "the 5 pods that have CPU; the 2 others are named",
        _all(_counted("pods", CPU, 5), _counted("pods", MEMORY, 5), _says("2 of 7 running pods were never measured")),
    ),
    "08": (
        "requests, capacity, static pods by name, Deployments by decimal hashes",
        _all(
            lambda read: read.requests() > 5 and read.capacity() > 0,
            lambda read: "StaticPod/kube-proxy" in read.services() and "Deployment/kube-dns" in read.services(),
        ),
    ),
    "09": (
        "27 pods, requests, capacity, static pods by name",
        _all(
            lambda read: read.requests() > 5 and read.capacity() > 0,
            lambda read: any(one.startswith("StaticPod/") for one in read.services()),
        ),
    ),
    "10": ("7 pods; CronJobs named by seconds", lambda read: len(_frame(read.tables, "pods")) == 7),
    "11": ("nothing, said", _says("kube_pod_info")),
    "12": ("pods by the uid in the path", lambda read: read.pods.get(CPU, (0, 0.0))[0] >= 2),
    "13": ("one node, memory without MemAvailable", _all(_counted("nodes", CPU, 1), _counted("nodes", MEMORY, 1))),
    "14": ("sda and ens160", _all(_counted("nodes", DISK, 1), _counted("nodes", NETWORK, 1, 4922513.5))),
    "15": ("no part of a disk", _counted("nodes", DISK, 0)),
    "18": ("70 pods, not doubled", _all(_counted("pods", CPU, 70), _counted("pods", MEMORY, 70))),
    "19": ("7 pods", _counted("pods", MEMORY, 7)),
    "16": ("windows_exporter is read", _all(_counted("nodes", CPU, 1), _counted("nodes", MEMORY, 1))),
    "21": ("the pod's own cgroup", _counted("pods", MEMORY, 1, 403783680.0)),
    "22": ("1 pod's network", _counted("pods", NETWORK, 1)),
    "23": ("host network is not the pod's", _counted("pods", NETWORK, 0)),
    "24": ("2 pods or more by their cgroups", lambda read: read.pods.get(CPU, (0, 0.0))[0] >= 1),
    "25": ("2 pods, one of them by its cgroup", _counted("pods", CPU, 2)),
    "26": ("1 pod, not tripled", _counted("pods", MEMORY, 1)),
    "27": ("none of its series is read, said", _says("were never measured")),
    "28": ("honorLabels", _says("honorLabels")),
    "36": ("1 pod's network", _counted("pods", NETWORK, 1)),
    "37": ("2 pods by their cgroups", _counted("pods", CPU, 2)),
    "38": ("1 pod by its cgroup", _all(_counted("pods", CPU, 1, 0.41277), _counted("pods", MEMORY, 1))),
}
"""By the number of the body: what is right in words, and the rule."""
