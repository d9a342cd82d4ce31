"""The public traces as curves of half hours, or of finer steps: one row per VM, server or metric.

data/README.md, "The traces", says where they come from and what the files look like that are read here. They are only
averaged to these steps and, where a source keeps receive and transmit (read and write) apart, added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from base.arrays import Floats32
from base.errors import InputError
from benchmarks.clusters.cluster import SLOT_MINUTES, SLOTS_PER_DAY


@dataclass(frozen=True, slots=True)
class Curves:
    """Means of many entities, over half hours unless the reader was asked for finer steps.

    values : resource name -> (n_entities, n_slots), NaN where nothing was measured
    start  : UTC instant of slot 0
    """

    entities: tuple[str, ...]
    start: pd.Timestamp
    values: Mapping[str, Floats32]

    @property
    def n_slots(self) -> int:
        """Length in half hours, a multiple of 48."""
        return int(next(iter(self.values.values())).shape[1])

    def last_days(self, days: int) -> Curves:
        """Only the last `days` days."""
        skip = self.n_slots - days * SLOTS_PER_DAY
        return Curves(
            self.entities,
            self.start + pd.Timedelta(minutes=SLOT_MINUTES * skip),
            {name: values[:, skip:] for name, values in self.values.items()},
        )

    def of(self, entity: str, resource: str) -> Floats32:
        """(n_slots,) the curve of one entity."""
        curve: Floats32 = self.values[resource][self.entities.index(entity)]
        return curve


def read_smd(traces: Path) -> Curves:
    """Server Machine Dataset: 12 machines, scaled to 0..1 by its publishers; 32 whole days."""
    return _read(
        traces / "smd.parquet",
        {
            "cpu": ("cpu_fraction",),
            "memory": ("memory_fraction",),
            "disk": ("disk_read_bps", "disk_write_bps"),
            "network": ("network_receive_bps", "network_transmit_bps"),
        },
        whole_days=False,
    )


def read_asd(traces: Path, *, step_minutes: int = SLOT_MINUTES) -> Curves:
    """Application Server Dataset: unnamed metrics of 8 servers, scaled to 0..1; read as `cpu`; 45 days."""
    return _read(traces / "asd.parquet", {"cpu": ("value",)}, step_minutes=step_minutes)


def read_azure(traces: Path) -> Curves:
    """Azure V1: 65 VMs, the share of their CPU that is in use; 27 whole days."""
    return _read(traces / "azure_v1.parquet", {"cpu": ("cpu_fraction",)})


def read_bitbrains_cpu(traces: Path, *, step_minutes: int) -> Curves:
    """The CPU of Bitbrains rnd alone, in steps of 5 minutes or more."""
    return _read(traces / "bitbrains_rnd.parquet", {"cpu": ("cpu_cores_used",)}, step_minutes=step_minutes)


def read_bitbrains(traces: Path) -> Curves:
    """Bitbrains rnd: 318 VMs with CPU (cores), memory (bytes), disk and network (bytes/s); 91 days."""
    return _read(
        traces / "bitbrains_rnd.parquet",
        {
            "cpu": ("cpu_cores_used",),
            "memory": ("memory_bytes",),
            "disk": ("disk_read_bps", "disk_write_bps"),
            "network": ("network_receive_bps", "network_transmit_bps"),
        },
    )


def _read(
    path: Path, columns: Mapping[str, tuple[str, ...]], *, whole_days: bool = True, step_minutes: int = SLOT_MINUTES
) -> Curves:
    if not path.exists():
        raise InputError(
            f"{path} is not there: --traces names the directory with {path.name}; "
            'data/README.md, "The traces", says what that is'
        )
    wanted = [column for group in columns.values() for column in group]
    # Row groups are read one by one: three months of 318 VMs at once would need gigabytes.
    parts: list[pd.DataFrame] = []
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        frame = file.read_row_group(group, columns=["entity", "timestamp", *wanted]).to_pandas()
        frame["timestamp"] = frame["timestamp"].dt.floor(f"{step_minutes}min")
        keys = [frame["entity"], frame["timestamp"]]
        grouped = frame[wanted].astype(np.float64).groupby(keys, observed=True)
        # Sums and counts, because an entity or a half hour may continue in the next row group.
        part = grouped.sum().join(grouped.count(), rsuffix=" count")
        parts.append(part)
    table = pd.concat(parts).groupby(level=[0, 1], observed=True).sum()
    start: pd.Timestamp = table.index.get_level_values(1).min()
    last: pd.Timestamp = table.index.get_level_values(1).max()
    n_slots = int((last - start) / pd.Timedelta(minutes=step_minutes)) + 1
    if whole_days:
        n_slots -= n_slots % (SLOTS_PER_DAY * SLOT_MINUTES // step_minutes)
    grid = pd.date_range(start, periods=n_slots, freq=f"{step_minutes}min")
    entities = tuple(sorted(map(str, table.index.get_level_values(0).unique())))
    values: dict[str, Floats32] = {}
    for name, group_columns in columns.items():
        total = sum((table[c] / table[f"{c} count"].where(table[f"{c} count"] > 0) for c in group_columns), start=0.0)
        wide = pd.Series(total, index=table.index).unstack(0).reindex(index=grid, columns=list(entities))
        values[name] = np.ascontiguousarray(wide.to_numpy(np.float32).T)
    return Curves(entities, start, values)
