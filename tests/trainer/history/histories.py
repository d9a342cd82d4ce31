"""Small history directories for tests, and the slow, obvious way to read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from base.arrays import Floats
from forecast.calendar import Calendar
from forecast.resources import RESOURCES

COLUMNS = [resource.column for resource in RESOURCES]
CAPACITY = dict.fromkeys(COLUMNS, 1000000.0)


@dataclass
class Tables:
    """The files of a history as data frames; tests damage what they like and write it."""

    usage: pd.DataFrame
    nodes: pd.DataFrame
    pods: pd.DataFrame
    capacity: pd.DataFrame
    settings: dict[str, Any] = field(default_factory=dict)

    def write(self, directory: Path, **parquet: Any) -> Path:
        """Write all files; parquet: options for usage.parquet such as row_group_size."""
        directory.mkdir(parents=True, exist_ok=True)
        self.usage.to_parquet(directory / "usage.parquet", index=False, **parquet)
        for name in ("nodes", "pods", "capacity"):
            getattr(self, name).to_parquet(directory / f"{name}.parquet", index=False)
        if self.settings:
            (directory / "history.json").write_text(json.dumps(self.settings))
        return directory


def tables(
    *,
    start: str = "2026-03-02",
    days: float = 3,
    step_minutes: int = 15,
    services: Mapping[str, int] = {"cart": 2, "db": 1},
    n_nodes: int = 2,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Tables:
    """A history without any flaw. services: name -> pods. Pods sit on nodes in turn; nodes use a bit more than them."""
    rng = np.random.default_rng(seed)
    times = pd.date_range(start, periods=round(days * 24 * 60 / step_minutes), freq=f"{step_minutes}min", tz="UTC")
    names = [(f"Deployment/{service}", f"{service}-{i}") for service, n_pods in services.items() for i in range(n_pods)]
    nodes = [f"node-{i}" for i in range(n_nodes)]
    usage = pd.DataFrame(
        {
            "timestamp": np.repeat(times, len(names)),
            "namespace": "shop",
            "service": np.tile([service for service, _ in names], len(times)),
            "pod": np.tile([pod for _, pod in names], len(times)),
            "node": np.tile([nodes[i % n_nodes] for i in range(len(names))], len(times)),
        }
    )
    for column in COLUMNS:
        usage[column] = rng.uniform(0, 10, len(usage))
    totals = (
        usage.groupby(["timestamp", "node"])[COLUMNS]
        .sum()
        .reindex(pd.MultiIndex.from_product([times, nodes], names=["timestamp", "node"]), fill_value=0.0)
    )
    return Tables(
        usage=usage,
        nodes=(totals + 1.0).reset_index(),
        pods=pd.DataFrame(
            {
                "namespace": "shop",
                "service": [service for service, _ in names],
                "pod": [pod for _, pod in names],
                "request_cpu_cores": np.arange(1.0, len(names) + 1),
                "request_memory_bytes": 1e6,
            }
        ),
        capacity=pd.DataFrame({"node": nodes, **CAPACITY}),
        settings=dict(settings or {}),
    )


def slow_slots(usage: pd.DataFrame, calendar: Calendar) -> pd.DataFrame:
    """Rows with local day and slot of the day."""
    local = usage["timestamp"].dt.tz_convert(calendar.zone)
    return usage.assign(day=local.dt.date, slot=(local.dt.hour * 60 + local.dt.minute) // 30)


def slow_usage_per_pod(usage: pd.DataFrame, calendar: Calendar, days: tuple[Any, ...], service: str) -> Floats:
    """(n_resources, n_days, 48): mean over the samples of all pods of a service, by group-by."""
    rows = slow_slots(usage[usage["service"] == service], calendar)
    result = np.full((len(COLUMNS), len(days), 48), np.nan)
    for index, day in enumerate(days):
        for slot in range(48):
            result[:, index, slot] = rows.loc[(rows["day"] == day) & (rows["slot"] == slot), COLUMNS].mean()
    return result
