"""Clusters as history directories: usage, pods, nodes and capacity in Parquet, and history.json.

The layout is the one every command reads (`--history DIR`). Files are written without a time stamp of their own, so
the same cluster gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from base.arrays import Bools, Floats32, Ints
from benchmarks.clusters.cluster import SLOT_MINUTES, Cluster
from benchmarks.clusters.pods import round_mantissa
from forecast.resources import RESOURCES
from trainer.history.user_lists import ListedEvent

USAGE_COLUMNS = [resource.column for resource in RESOURCES]
ROW_GROUP = 500_000
TIMESTAMP = pa.timestamp("ms", tz="UTC")


def write_history(cluster: Cluster, out: Path, *, mantissa_bits: int = 10) -> None:
    """Write the cluster to `out`, replacing the files of an earlier build.

    mantissa_bits: usage is rounded to so many bits (6: half a percent at most), which is what makes files small.
    """
    out.mkdir(parents=True, exist_ok=True)
    usage = round_mantissa(cluster.usage, mantissa_bits)
    _write_usage(cluster, usage, out / "usage.parquet")
    rounded = Cluster(**{name: getattr(cluster, name) for name in Cluster.__slots__} | {"usage": usage})
    _write_nodes(cluster, rounded.node_totals(), out / "nodes.parquet")
    pods = pd.DataFrame(
        {
            "namespace": [cluster.services[s].namespace for s in cluster.service_of],
            "service": [cluster.services[s].owner for s in cluster.service_of],
            "pod": cluster.pods,
            "request_cpu_cores": [cluster.services[s].request_cpu_cores for s in cluster.service_of],
            "request_memory_bytes": [cluster.services[s].request_memory_bytes for s in cluster.service_of],
        }
    ).sort_values(["namespace", "service", "pod"], ignore_index=True)
    _write(pa.Table.from_pandas(pods, preserve_index=False), out / "pods.parquet")
    capacity = pd.DataFrame({"node": cluster.nodes})
    for index, column in enumerate(USAGE_COLUMNS):
        capacity[column] = pd.array(cluster.capacity[:, index], dtype="Float64").to_numpy(np.float64, na_value=np.nan)
    capacity["allocatable_cpu_cores"] = cluster.allocatable[:, 0]
    capacity["allocatable_memory_bytes"] = cluster.allocatable[:, 1]
    _write(pa.Table.from_pandas(capacity, preserve_index=False), out / "capacity.parquet")
    settings: dict[str, str] = {"time_zone": cluster.time_zone}
    if cluster.holiday_country is not None:
        settings["holiday_country"] = cluster.holiday_country
    settings["step"] = f"{SLOT_MINUTES}m"
    if cluster.comment is not None:
        settings["comment"] = cluster.comment
    if cluster.events:
        listed = [ListedEvent(**asdict(event)).model_dump(exclude_defaults=True) for event in cluster.events]
        (out / "events.yaml").write_text(yaml.safe_dump(listed, sort_keys=False), encoding="utf-8")
    if cluster.moved:
        named = [{"old": old, "new": new} for old, new in cluster.moved]
        (out / "moved.yaml").write_text(yaml.safe_dump(named, sort_keys=False), encoding="utf-8")
    (out / "history.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _write_usage(cluster: Cluster, usage: Floats32, path: Path) -> None:
    """Rows by timestamp, then namespace, service and pod; only pods that live in the slot."""
    namespaces = sorted({s.namespace for s in cluster.services})
    owners = sorted({s.owner for s in cluster.services})
    keys = [
        (cluster.services[s].namespace, cluster.services[s].owner, pod)
        for s, pod in zip(cluster.service_of, cluster.pods, strict=True)
    ]
    order: Ints = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    # Dictionaries are the same in every row group: positions in these lists.
    namespace_index = np.array([namespaces.index(keys[p][0]) for p in order], dtype=np.int32)
    owner_index = np.array([owners.index(keys[p][1]) for p in order], dtype=np.int32)
    pod_values = pa.array([cluster.pods[p] for p in order])
    node_index = cluster.node_of[order].astype(np.int32)
    # A slot in which nothing at all was measured is an outage of the monitoring: it has no rows.
    alive = (cluster.alive() & np.isfinite(usage).any(axis=(0, 1)))[order]  # (n_pods, n_slots)
    sorted_usage = usage[order]
    times = cluster.timestamps()
    schema = pa.schema(
        [("timestamp", TIMESTAMP)]
        + [(name, pa.dictionary(pa.int32(), pa.string())) for name in ("namespace", "service", "pod", "node")]
        + [(column, pa.float32()) for column in USAGE_COLUMNS]
    )
    slots_per_group = max(ROW_GROUP // max(int(alive.sum(axis=0).max()), 1), 1)
    with _writer(path, schema) as writer:
        for begin in range(0, cluster.n_slots, slots_per_group):
            window = slice(begin, begin + slots_per_group)
            slot, pod = np.nonzero(alive[:, window].T)  # by slot, then in the order of keys
            columns = [
                pa.array(times[window][slot]).cast(TIMESTAMP),
                pa.DictionaryArray.from_arrays(namespace_index[pod], pa.array(namespaces)),
                pa.DictionaryArray.from_arrays(owner_index[pod], pa.array(owners)),
                pa.DictionaryArray.from_arrays(pod.astype(np.int32), pod_values),
                pa.DictionaryArray.from_arrays(node_index[pod], pa.array(cluster.nodes)),
            ]
            for resource in range(len(RESOURCES)):
                values = sorted_usage[:, resource, window].T[slot, pod]
                columns.append(pa.array(values, mask=np.isnan(values)))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_nodes(cluster: Cluster, totals: Floats32, path: Path) -> None:
    n_nodes = len(cluster.nodes)
    measured: Bools = np.asarray(np.isfinite(totals).any(axis=(0, 1)))  # (n_slots,)
    totals = totals[:, :, measured]
    times = cluster.timestamps()[measured]
    node_index = np.tile(np.arange(n_nodes, dtype=np.int32), len(times))
    columns = [
        pa.array(times.repeat(n_nodes)).cast(TIMESTAMP),
        pa.DictionaryArray.from_arrays(node_index, pa.array(cluster.nodes)),
    ]
    for resource in range(len(RESOURCES)):
        values = round_mantissa(totals[:, resource].T.ravel(), 12)
        columns.append(pa.array(values, mask=np.isnan(values)))
    _write(pa.Table.from_arrays(columns, names=["timestamp", "node", *USAGE_COLUMNS]), path)


def _write(table: pa.Table, path: Path) -> None:
    # pandas leaves its own version in the schema's metadata; without it a rebuild gives the same bytes.
    table = table.replace_schema_metadata(None)
    floats = [name for name in table.column_names if pa.types.is_floating(table.schema.field(name).type)]
    for name in floats:
        column = table.column(name).combine_chunks()
        values = column.to_numpy(zero_copy_only=False)
        index = table.column_names.index(name)
        table = table.set_column(index, name, pa.array(values, type=column.type, mask=np.isnan(values)))
    with _writer(path, table.schema) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=12, use_dictionary=True)
