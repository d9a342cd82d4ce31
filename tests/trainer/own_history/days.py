"""Days of a small history as a server would tell them, for tests of our own history."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa

from forecast.resources import RESOURCES
from trainer.prometheus.day_tables import DayTables

DAY = date(2026, 5, 4)
STEP = timedelta(minutes=30)
PODS = (("cart-a", "node-0"), ("cart-b", "node-1"), ("search-0", "node-0"))


def midnight(day: date = DAY, hours: float = 0) -> datetime:
    return datetime.combine(day, time(), UTC) + timedelta(hours=hours)


def day_tables(
    day: date = DAY, *, first: float = 0, until: float = 24, level: float = 1.0, requests: float = 0.5
) -> DayTables:
    """Half-hourly rows from hour `first` to hour `until` of a day; CPU is level x (1 + hour)."""
    times = pd.date_range(midnight(day, first), midnight(day, until), freq=STEP, inclusive="left")
    hours = np.asarray(times.hour + times.minute / 60, dtype=np.float64)
    usage = {r.column: level * (1 + hours) for r in RESOURCES}
    parts = [
        pd.DataFrame(
            {
                "timestamp": times,
                "namespace": "shop",
                "service": "StatefulSet/search" if pod == "search-0" else "Deployment/cart",
                "pod": pod,
                "node": node,
                **usage,
            }
        )
        for pod, node in PODS
    ]
    nodes = [pd.DataFrame({"timestamp": times, "node": node, **usage}) for node in ("node-0", "node-1")]
    pods = pd.DataFrame(
        {
            "namespace": "shop",
            "service": ["Deployment/cart", "Deployment/cart", "StatefulSet/search"],
            "pod": [pod for pod, _ in PODS],
            "request_cpu_cores": requests,
            "request_memory_bytes": 1e9,
        }
    )
    capacity = pd.DataFrame({"node": ["node-0", "node-1"], **{r.column: 100.0 for r in RESOURCES}})
    where = {"timestamp": times, "namespace": "shop", "pod": "cart-a"}
    hits = pd.DataFrame({**where, "throttled_share": level / 10, "oom_memory_bytes": np.nan})
    return DayTables(
        day=day,
        usage=_samples(pd.concat(parts)),
        nodes=_samples(pd.concat(nodes)),
        pods=pa.Table.from_pandas(pods, preserve_index=False),
        capacity=pa.Table.from_pandas(capacity, preserve_index=False),
        limit_hits=_samples(hits),
        counts={},
        recorded_share=0.0,
    )


def _samples(frame: pd.DataFrame) -> pa.Table:
    floats = frame.select_dtypes("float64").columns
    frame = frame.sort_values("timestamp", kind="stable").astype(dict.fromkeys(floats, "float32"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    index = table.schema.get_field_index("timestamp")
    return table.set_column(index, "timestamp", table["timestamp"].cast(pa.timestamp("ms", tz="UTC")))


def hours_of(table: pa.Table) -> list[float]:
    """The hours of the day that a table has rows for."""
    times = pd.DatetimeIndex(table["timestamp"].to_pandas().unique())
    return sorted(times.hour + times.minute / 60)
