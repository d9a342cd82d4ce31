"""A history directory small enough to train on in seconds, for tests of whole commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SERVICES = {"Deployment/cart": 3, "StatefulSet/search": 2, "Deployment/mail": 1}
COLUMNS = ("cpu_cores", "memory_bytes", "disk_bytes_per_second", "network_bytes_per_second", "log_bytes_per_second")
LEVELS = (1.0, 2.0**30, 1e6, 2e6, 1e4)


@dataclass
class Tables:
    """The four tables, to be spoilt by a test before they are written."""

    usage: pd.DataFrame
    pods: pd.DataFrame
    nodes: pd.DataFrame
    capacity: pd.DataFrame

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("usage", "pods", "nodes", "capacity"):
            getattr(self, name).to_parquet(directory / f"{name}.parquet")
        return directory


def small_tables(n_days: int = 9, *, seed: int = 0) -> Tables:
    """Six pods of three services on two nodes, half-hourly, with an evening peak and some noise."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2026-10-05", periods=48 * n_days, freq="30min", tz="UTC")
    evening = 1 + 4 * np.exp(-(((np.arange(len(times)) % 48) - 40.0) ** 2) / 18)
    parts, requests, total = [], [], np.zeros((2, len(times), len(COLUMNS)))
    pods = [(service, number) for service, count in SERVICES.items() for number in range(count)]
    for index, (service, number) in enumerate(pods):
        node = index % 2
        shape = evening[:, None] * np.exp(rng.normal(0, 0.1, (len(times), 1)))
        usage = (0.2 + 0.1 * index) * shape * np.array(LEVELS)  # (n_times, n_resources)
        total[node] += usage
        name = f"{service.partition('/')[2]}-{number}"
        frame = pd.DataFrame(usage, columns=list(COLUMNS))
        frame.insert(0, "timestamp", times)
        parts.append(frame.assign(namespace="shop", service=service, pod=name, node=f"node-{node}"))
        requests.append(("shop", service, name, 0.5, 2.0**30))
    nodes = []
    for node in range(2):
        frame = pd.DataFrame(total[node] * 1.05, columns=list(COLUMNS))
        frame.insert(0, "timestamp", times)
        nodes.append(frame.assign(node=f"node-{node}"))
    capacity = pd.DataFrame(
        {"node": ["node-0", "node-1"], **{c: 16.0 * v for c, v in zip(COLUMNS, LEVELS, strict=True)}}
    )
    columns = ["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
    return Tables(
        usage=pd.concat(parts, ignore_index=True),
        pods=pd.DataFrame(requests, columns=columns),
        nodes=pd.concat(nodes, ignore_index=True),
        capacity=capacity,
    )
