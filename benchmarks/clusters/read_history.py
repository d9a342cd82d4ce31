"""A history directory back into a cluster in memory, so that a scenario can be played on any built history."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from base.arrays import Floats, Floats32, Ints
from benchmarks.clusters.cluster import SLOT_MINUTES, Cluster, Service
from forecast.resources import RESOURCES

USAGE_COLUMNS = [resource.column for resource in RESOURCES]


def read_cluster(directory: Path) -> Cluster:
    """Read a history of half hours as `write_history` leaves it: no duplicate rows, a pod on one node all its life."""
    usage = pd.read_parquet(directory / "usage.parquet")
    nodes = pd.read_parquet(directory / "nodes.parquet")
    pods = pd.read_parquet(directory / "pods.parquet")
    capacity = pd.read_parquet(directory / "capacity.parquet")
    settings = json.loads((directory / "history.json").read_text(encoding="utf-8"))
    start: pd.Timestamp = nodes["timestamp"].min()
    n_slots = int(_slots(nodes["timestamp"], start).max()) + 1
    node_names = [str(name) for name in capacity["node"]]

    keys = pd.MultiIndex.from_frame(pods[["namespace", "pod"]])
    row_pod: Ints = keys.get_indexer(
        pd.MultiIndex.from_arrays([usage["namespace"].astype(str), usage["pod"].astype(str)])
    ).astype(np.int64)
    row_slot = _slots(usage["timestamp"], start)
    values: Floats32 = np.full((len(pods), len(RESOURCES), n_slots), np.nan, dtype=np.float32)
    values[row_pod, :, row_slot] = usage[USAGE_COLUMNS].to_numpy(np.float32)
    first = np.full(len(pods), n_slots, dtype=np.int64)
    end = np.zeros(len(pods), dtype=np.int64)
    np.minimum.at(first, row_pod, row_slot)
    np.maximum.at(end, row_pod, row_slot + 1)
    node_of = np.zeros(len(pods), dtype=np.int64)
    node_of[row_pod] = pd.Index(node_names).get_indexer(pd.Index(usage["node"].astype(str)))

    owners = pods[["namespace", "service"]].astype(str).agg("/".join, axis=1)
    codes, unique = pd.factorize(owners, sort=True)
    example = pods.groupby(codes).first()
    services = tuple(
        _service(owner, float(row["request_cpu_cores"]), float(row["request_memory_bytes"]))
        for owner, (_, row) in zip(unique, example.iterrows(), strict=True)
    )
    totals: Floats32 = np.full((len(node_names), len(RESOURCES), n_slots), np.nan, dtype=np.float32)
    row_node = pd.Index(node_names).get_indexer(pd.Index(nodes["node"].astype(str)))
    totals[row_node, :, _slots(nodes["timestamp"], start)] = nodes[USAGE_COLUMNS].to_numpy(np.float32)
    base = totals.astype(np.float64)
    for pod, node in enumerate(node_of):
        base[node] -= np.nan_to_num(values[pod])
    limits: Floats = capacity[USAGE_COLUMNS].to_numpy(np.float64, na_value=np.nan)
    return Cluster(
        time_zone=settings.get("time_zone", "UTC"),
        holiday_country=settings.get("holiday_country"),
        start=start,
        services=services,
        pods=tuple(pods["pod"].astype(str)),
        service_of=codes.astype(np.int64),
        first=first,
        end=end,
        node_of=node_of,
        usage=values,
        nodes=tuple(node_names),
        # Rounding on disk leaves differences of a few millionths below zero.
        base=np.maximum(base, 0.0).astype(np.float32),
        capacity=limits,
        allocatable=capacity[["allocatable_cpu_cores", "allocatable_memory_bytes"]].to_numpy(np.float64),
        comment=settings.get("comment"),
    )


def _slots(timestamps: pd.Series[pd.Timestamp], start: pd.Timestamp) -> Ints:
    """(n_rows,) half hours since `start`."""
    slots: Ints = ((timestamps - start) // pd.Timedelta(minutes=SLOT_MINUTES)).to_numpy().astype(np.int64)
    return slots


def _service(owner: str, request_cpu_cores: float, request_memory_bytes: float) -> Service:
    namespace, kind, name = owner.split("/", 2)
    return Service(namespace, kind, name, request_cpu_cores, request_memory_bytes)
