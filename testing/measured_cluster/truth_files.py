"""The truth of a Cluster in the history layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from base.arrays import Ints
from forecast.resources import RESOURCES

if TYPE_CHECKING:
    from testing.measured_cluster.cluster import Cluster

_STEP = 300
_COLUMNS = [resource.column for resource in RESOURCES]


def write_history(cluster: Cluster, directory: Path) -> None:
    """The files of docs/understand/history-layout.md. Nothing is known of the times at which nothing was scraped."""
    from testing.measured_cluster.cluster import CORES, MEMORY_BYTES, N_NODES, NETWORK_SPEED

    directory.mkdir(parents=True, exist_ok=True)
    pd.concat(list(_usage_frames(cluster))).sort_values(["timestamp", "namespace", "pod"]).to_parquet(
        directory / "usage.parquet", index=False
    )
    nodes = cluster.base.copy()
    for life in cluster.lives:
        nodes[life.node, life.begin : life.end] += life.usage
    ticks = np.flatnonzero(~cluster.gap)
    frame = pd.DataFrame(
        {
            "timestamp": np.repeat(_times(cluster, ticks), N_NODES),
            "node": [f"node-{i}" for i in range(N_NODES)] * len(ticks),
        }
    )
    frame[_COLUMNS] = nodes[:, ticks].transpose(1, 0, 2).reshape(-1, len(RESOURCES)).astype(np.float32)
    frame.to_parquet(directory / "nodes.parquet", index=False)
    last = {(life.namespace, life.pod): life for life in sorted(cluster.lives, key=lambda life: life.begin)}
    pd.DataFrame(
        [(namespace, life.top, pod, *life.requests) for (namespace, pod), life in sorted(last.items())],
        columns=["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"],
    ).to_parquet(directory / "pods.parquet", index=False)
    capacity = [
        (f"node-{i}", CORES, MEMORY_BYTES, None, NETWORK_SPEED, None, CORES - 0.5, MEMORY_BYTES - 2.0**30)
        for i in range(N_NODES)
    ]
    pd.DataFrame(capacity, columns=["node", *_COLUMNS, "allocatable_cpu_cores", "allocatable_memory_bytes"]).astype(
        dict.fromkeys(_COLUMNS, float)
    ).to_parquet(directory / "capacity.parquet", index=False)
    (directory / "history.json").write_text(json.dumps({"time_zone": "UTC", "step": "5m"}))


def _usage_frames(cluster: Cluster) -> Iterator[pd.DataFrame]:
    for life in cluster.lives:
        ticks = np.arange(life.begin, life.end)
        ticks = ticks[~cluster.gap[ticks]]
        frame = pd.DataFrame(
            {
                "timestamp": _times(cluster, ticks),
                "namespace": life.namespace,
                "service": life.top,
                "pod": life.pod,
                "node": f"node-{life.node}",
            }
        )
        frame[_COLUMNS] = life.usage[ticks - life.begin].astype(np.float32)
        yield frame


def _times(cluster: Cluster, ticks: Ints) -> pd.DatetimeIndex:
    return pd.to_datetime((cluster.start + ticks * _STEP) * 1000, unit="ms", utc=True).as_unit("ms")
