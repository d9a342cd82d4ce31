"""Hand-made series of one day: the words in which the trap tests are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from testing.servers.openmetrics import MetricSeries
from trainer.prometheus.day_tables import DayTables

DAY = date(2026, 3, 2)
MINUTE, HOUR = 60, 3600
_MIDNIGHT = int(datetime.combine(DAY, time(), UTC).timestamp())


@dataclass
class Scrapes:
    """Collects series; times are seconds since midnight, scraped every minute at second 10."""

    series: list[MetricSeries] = field(default_factory=list)

    def counter(
        self,
        name: str,
        rate: float,
        /,
        begin: float = 0,
        end: float = 4 * HOUR,
        *,
        resets: Sequence[float] = (),
        **labels: Any,
    ) -> None:
        """A counter that grows by `rate` per second and starts again from zero right after each reset."""
        times = self._times(begin, end)
        values = 1e4 * (rate + 1) + rate * (times - times[0] if len(times) else times)
        for reset in resets:
            after = times > reset
            values[after] -= values[np.flatnonzero(~after)[-1]]
        self._add(name, times, values, labels)

    def gauge(self, name: str, value: Any, /, begin: float = 0, end: float = 4 * HOUR, **labels: Any) -> None:
        """A constant, or a function of the times (an array)."""
        times = self._times(begin, end)
        values = value(times) if callable(value) else np.full(len(times), float(value))
        self._add(name, times, np.asarray(values, dtype=np.float64), labels)

    def pod(
        self,
        namespace: str,
        pod: str,
        node: str = "n1",
        begin: float = 0,
        end: float = 4 * HOUR,
        *,
        uid: str = "",
        kind: str = "<none>",
        owner: str = "<none>",
        host_network: bool = False,
        phase: str = "Running",
        cpu: float | None = None,
        **extra: str,
    ) -> None:
        """kube_pod_info and its phase; with `cpu` also the counter of its container."""
        where = {"namespace": namespace, "pod": pod, "uid": uid or f"uid-{pod}"}
        info = {"node": node, "created_by_kind": kind, "created_by_name": owner}
        info["host_network"] = "true" if host_network else "false"
        self.gauge("kube_pod_info", 1, begin, end, **where, **info, **extra)
        for one in ("Pending", "Running", "Succeeded"):
            self.gauge("kube_pod_status_phase", float(one == phase), begin, end, **where, phase=one, **extra)
        if cpu is not None:
            self.cpu(namespace, pod, cpu, begin, end, node=node)

    def cpu(
        self, namespace: str, pod: str, rate: float, begin: float = 0, end: float = 4 * HOUR, **labels: Any
    ) -> None:
        """CPU of a container, by default "main"."""
        labels = {"container": "main"} | labels
        self.counter("container_cpu_usage_seconds_total", rate, begin, end, namespace=namespace, pod=pod, **labels)

    def memory(self, namespace: str, pod: str, value: Any, container: str = "main") -> None:
        """Working set of a container."""
        where: dict[str, Any] = {"namespace": namespace, "pod": pod, "container": container}
        self.gauge("container_memory_working_set_bytes", value, **where)

    def _times(self, begin: float, end: float) -> Any:
        first, last = int(-(-(begin - 10) // MINUTE)), int((end - 11) // MINUTE)
        return np.arange(first, last + 1) * MINUTE + 10

    def _add(self, name: str, times: Any, values: Any, labels: dict[str, Any]) -> None:
        self.series.append(MetricSeries(name, {k: str(v) for k, v in labels.items()}, times + _MIDNIGHT, values))


def options_day_end() -> datetime:
    """When the day is over."""
    return datetime.combine(DAY, time(), UTC) + timedelta(days=1)


def frame(table: pa.Table) -> pd.DataFrame:
    """A table with plain text columns, and `at`: seconds since midnight."""
    data: pd.DataFrame = table.to_pandas()
    for column in ("namespace", "service", "pod", "node"):
        if column in data:
            data[column] = data[column].astype(str)
    if "timestamp" in data:
        data["at"] = (data["timestamp"] - pd.Timestamp(DAY, tz="UTC")).dt.total_seconds()
    return data


def of(tables: DayTables, pod: str) -> pd.DataFrame:
    """Usage rows of one pod."""
    usage = frame(tables.usage)
    return usage[usage["pod"] == pod].reset_index(drop=True)


def when(data: pd.DataFrame, begin: float, end: float) -> pd.DataFrame:
    """Rows whose timestamps lie in [begin, end) seconds after midnight."""
    return data[(data["at"] >= begin) & (data["at"] < end)]
