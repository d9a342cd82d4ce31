"""History directories in which the pods of CronJobs come and go, beside services that are always there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from tests.trainer.history.histories import COLUMNS, Tables, tables

__all__ = ["STEP_MINUTES", "job_tables", "nightly", "run_rows"]

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
