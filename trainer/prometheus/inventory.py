"""What a server has, asked at one moment: agents and their versions, nodes, pods, and how the last minutes balance.

Nothing here reads weeks: two instant queries, and a reading of the last fifteen minutes in the manner of a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from base.progress import Progress, silent
from forecast.resources import RESOURCES
from trainer.prometheus.day_reading import read_day
from trainer.prometheus.day_tables import DayTables, Remark
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.query_times import DayGrid

_TICKS, _LEAST_STEP, _SAMPLES_AT_ONCE = 3, 300, 40_000
_AGENTS: Mapping[str, str] = {
    "prometheus_build_info": "Prometheus",
    "thanos_build_info": "Thanos",
    "kube_state_metrics_build_info": "kube-state-metrics",
    "node_exporter_build_info": "node-exporter",
    "windows_exporter_build_info": "windows_exporter",
    "promtail_build_info": "Promtail",
    "alloy_build_info": "Alloy",
    "vector_build_info": "Vector",
    "fluentbit_build_info": "Fluent Bit",
}


@dataclass(frozen=True, slots=True)
class ServerInventory:
    """agents: versions by name, as far as they tell. nodes: how many by platform. recent: the last minutes, as read."""

    agents: Mapping[str, tuple[str, ...]]
    nodes: Mapping[str, int]
    recent: DayTables
    remarks: tuple[Remark, ...]

    def lines(self) -> Iterator[str]:
        """What there is, in plain sentences; nodes and pods first."""
        platforms = ", ".join(f"{n:,} with {platform}" for platform, n in self.nodes.items())
        n_nodes, n_services = self.recent.capacity.num_rows, _distinct(self.recent.pods, "namespace", "service")
        yield (
            f"{n_nodes:,} nodes{f' ({platforms})' if platforms else ''}, {self.recent.pods.num_rows:,} running pods of "
            f"{n_services:,} services"
        )
        if self.agents:
            told = ", ".join(f"{name} {' and '.join(versions)}" for name, versions in self.agents.items())
            yield f"agents that tell their version: {told}"
        if named := self.recent.other_names:
            name, node = next(iter(named.items()))
            yield f"names of nodes: metrics have {len(named):,} that Kubernetes has not, such as {name} for {node}"
        else:
            yield "names of nodes: metrics and Kubernetes have the same"
        for resource in RESOURCES:
            yield _balance(self.recent, resource.name, resource.column)

    def to_json(self) -> dict[str, Any]:
        return {
            "agents": {name: list(versions) for name, versions in self.agents.items()},
            "nodes": dict(self.nodes),
            "other_names": dict(self.recent.other_names),
            "pods": self.recent.pods.num_rows,
            "measured": {r.name: _measured(self.recent, r.column) for r in RESOURCES},
            "remarks": [{"cause": r.cause, "text": r.text, "wrong": r.wrong} for r in self.remarks],
        }


def take_inventory(
    connection: PrometheusConnection, options: SourceOptions, at: datetime, progress: Progress = silent
) -> ServerInventory:
    """at: the moment, an aware datetime. Raises InputError as reading a day does."""
    step = max(_LEAST_STEP, options.step_seconds)
    end = int(at.timestamp()) // step * step
    grid = DayGrid.ending(datetime.fromtimestamp(end, UTC), step, _TICKS)
    # Small pieces, two at a time, so that a look at 100,000 pods stays small.
    small = options.model_copy(update={"parallel": 2, "max_samples": min(options.max_samples, _SAMPLES_AT_ONCE)})
    recent = read_day(connection, small, grid, progress)
    return ServerInventory(_agents(connection, at), _platforms(connection, at), recent, recent.remarks)


def _agents(connection: PrometheusConnection, at: datetime) -> dict[str, tuple[str, ...]]:
    query = f'group by (__name__, version) ({{__name__=~"{"|".join(_AGENTS)}"}})'
    found = connection.instant("inventory", query, at)
    versions: dict[str, set[str]] = {}
    for labels in found.labels:
        if (name := _AGENTS.get(labels.get("__name__", ""))) and labels.get("version"):
            versions.setdefault(name, set()).add(labels["version"])
    return {name: tuple(sorted(versions[name])) for name in sorted(versions)}


def _platforms(connection: PrometheusConnection, at: datetime) -> dict[str, int]:
    """Nodes by kubelet, runtime and operating system, the most frequent first."""
    query = (
        "count by (kubelet_version, container_runtime_version, os_image) (group by (node, kubelet_version, "
        "container_runtime_version, os_image) (kube_node_info))"
    )
    counts: Counter[str] = Counter()
    found = connection.instant("inventory", query, at)
    for labels, count in zip(found.labels, found.values.tolist(), strict=True):
        versions = (labels.get(name, "") for name in ("kubelet_version", "container_runtime_version", "os_image"))
        counts[", ".join(filter(None, versions)) or "no kubelet version"] += int(count)
    return dict(counts.most_common())


def _measured(recent: DayTables, column: str) -> dict[str, float | int | None]:
    """Means over the minutes: what pods and nodes use together, how many of them are measured; None = unknown."""
    out: dict[str, float | int | None] = {}
    for what, table, names in (("pods", recent.usage, ("namespace", "pod")), ("nodes", recent.nodes, ("node",))):
        known = table.filter(pc.is_valid(table[column]))
        n_times = len(pc.unique(known["timestamp"]))
        total = float(np.sum(known[column].to_numpy(), dtype=np.float64))
        out[what] = total / n_times if n_times else None
        out[f"measured_{what}"] = _distinct(known, *names)
    return out


def _distinct(table: pa.Table, *columns: str) -> int:
    return int(table.select(list(columns)).group_by(list(columns)).aggregate([]).num_rows)


def _balance(recent: DayTables, name: str, column: str) -> str:
    found = _measured(recent, column)
    pods, nodes = found["pods"], found["nodes"]
    n_pods, n_nodes = found["measured_pods"], found["measured_nodes"]
    if pods is None and nodes is None:
        return f"{name}: not measured"
    if nodes is None or pods is None:
        what, total = (f"{n_pods:,} pods", pods) if nodes is None else (f"{n_nodes:,} nodes", nodes)
        return f"{name}: of {what} alone, {_amount(total or 0.0, name)} together"
    share = f", {pods / nodes:.0%} of what {n_nodes:,} nodes use ({_amount(nodes, name)})" if nodes else ""
    return f"{name}: {n_pods:,} pods use {_amount(pods, name)}{share}"


def _amount(value: float, name: str) -> str:
    if name == "cpu":
        return f"{value:,.2f} cores"
    return f"{value / 1e6:,.1f} MB" + ("" if name == "memory" else "/s")
