"""Histories in which the pods of CronJobs come and go beside services that are always there: files, and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from forecast.history import History
from forecast.job_runs import JobRuns
from forecast.service_key import ServiceKey
from tests.trainer.history.histories import COLUMNS, Tables, tables

HOUR, DAY = 3600, 86_400

NIGHTLY = ServiceKey("shop", "CronJob", "report")

STEP_MINUTES = 5

_LATE = pd.Timedelta(seconds=5)
"""The pod of a CronJob runs some seconds after it is due."""


def run_rows(service: str, pod: str, start: pd.Timestamp, minutes: float, cpu_cores: float) -> pd.DataFrame:
    """Rows of one pod that runs for some minutes: one for each evaluation (every 5 minutes) at which it is seen.

    A row is stamped with the evaluation before it, as the reader of Prometheus does.
    """
    step = pd.Timedelta(minutes=STEP_MINUTES)
    seen = pd.date_range(start.ceil(step), start + pd.Timedelta(minutes=minutes), freq=step, inclusive="left")
    rows = pd.DataFrame(
        {"timestamp": seen - step, "namespace": "shop", "service": service, "pod": pod, "node": "node-0"},
    )
    for column in COLUMNS:
        rows[column] = cpu_cores
    return rows


def nightly(name: str, at: str, minutes: float, cpu_cores: float, days: Iterable[str]) -> list[pd.DataFrame]:
    """One run of CronJob/<name> on each of the days, due at a time in UTC."""
    return [
        run_rows(f"CronJob/{name}", f"{name}-{day}", pd.Timestamp(f"{day}T{at}Z") + _LATE, minutes, cpu_cores)
        for day in days
    ]


def job_tables(runs: Iterable[pd.DataFrame], *, days: int = 8, start: str = "2026-03-02") -> Tables:
    """Two services that are always there, and the runs."""
    data = tables(start=start, days=days, step_minutes=STEP_MINUTES, services={"cart": 2, "db": 1})
    usage = pd.concat([data.usage, *runs], ignore_index=True).sort_values("timestamp", kind="stable")
    inside = (usage["timestamp"] >= data.usage["timestamp"].min()) & (
        usage["timestamp"] <= data.usage["timestamp"].max()
    )
    data.usage = usage[inside].astype(dict.fromkeys(COLUMNS, np.float64))
    return data


def nights(days: Iterable[int], hour: float = 2, seconds: float = 3 * HOUR) -> list[tuple[int, float]]:
    """One run a night: (start, seconds)."""
    return [(int(day * DAY + hour * HOUR), seconds) for day in days]


def with_runs(
    history: History,
    service: int,
    runs: list[tuple[int, float]],
    *,
    owner: ServiceKey = NIGHTLY,
    open_: tuple[int, ...] = (),
    usage: float = 2.0,
) -> History:
    """The history with one service turned into a Job owner that has these runs (start, seconds).

    open_ : the runs whose end was not seen
    usage : of one pod while it runs, in every resource
    """
    start = np.array([s for s, _ in runs], dtype=np.int64)
    seconds = np.array([s for _, s in runs], dtype=np.float32)
    grid = np.arange(history.n_days * 48)[:, None] * 1800
    there = np.clip(np.minimum(grid + 1800, start + seconds) - np.maximum(grid, start), 0, 1800).sum(axis=1) / 1800
    replicas, per_pod = history.replicas.copy(), history.usage_per_pod.copy()
    replicas[service] = there.reshape(history.n_days, 48)
    per_pod[service] = np.where(replicas[service] > 0, usage, np.nan)
    is_open = np.zeros((len(runs), 2), dtype=np.bool_)
    is_open[list(open_), 1] = True
    table = history.runs
    return replace(
        history,
        services=(*history.services[:service], owner, *history.services[service + 1 :]),
        replicas=replicas,
        usage_per_pod=per_pod,
        runs=JobRuns(
            np.append(table.service, np.full(len(runs), service)),
            np.append(table.start, start),
            np.append(table.seconds, seconds),
            np.concatenate([table.open, is_open]),
        ),
    )
