"""A service that has grown from two pods to six an hour from now, on every day so far, as a published model."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from base.arrays import Bools, Floats
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.resources import RESOURCES
from forecast_scheduler.cli import run

DAYS = 14
QUIET, BUSY = 2, 6
"""Pods now, and in the four hours that begin an hour from now."""
CORES = 0.5
"""Of each of them, at any time."""


@pytest.fixture(scope="session")
def ramp_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with the model of the days before today."""
    directory = tmp_path_factory.mktemp("ramp")
    history = directory / "history"
    history.mkdir()
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    slot = (now.hour * 60 + now.minute) // SLOT_MINUTES
    pods = np.full(SLOTS_PER_DAY, QUIET)
    pods[(slot + 2 + np.arange(8)) % SLOTS_PER_DAY] = BUSY
    pods = np.tile(pods, DAYS)
    times = np.array([today - timedelta(days=DAYS) + n * timedelta(minutes=SLOT_MINUTES) for n in range(len(pods))])
    columns = [one.column for one in RESOURCES]

    def usage(number: int | None, there: Bools, scale: Floats | float) -> pd.DataFrame:
        """Of a pod, or of the node."""
        frame = pd.DataFrame(dict.fromkeys(columns, float("nan")), index=range(int(there.sum())))
        frame["timestamp"] = pd.to_datetime(pd.Series(times[there]), utc=True)
        frame["cpu_cores"], frame["memory_bytes"] = CORES * scale, 2.0**30 * scale
        frame["node"] = "a"
        if number is None:
            return frame
        return frame.assign(namespace="shop", service="Deployment/web", pod=f"web-5d9c7b6f4d-{number:05d}")

    each = [usage(number, pods > number, 1.0) for number in range(BUSY)]
    pd.concat(each).to_parquet(history / "usage.parquet", index=False)
    usage(None, pods > 0, pods).to_parquet(history / "nodes.parquet", index=False)
    requests = {"request_cpu_cores": 1.0, "request_memory_bytes": 2.0**30}
    of_each = {"namespace": "shop", "service": "Deployment/web"}
    rows = [{**of_each, "pod": f"web-5d9c7b6f4d-{number:05d}", **requests} for number in range(BUSY)]
    pd.DataFrame(rows).to_parquet(history / "pods.parquet", index=False)
    capacity = dict.fromkeys(columns, float("nan")) | {"cpu_cores": 64.0, "memory_bytes": 2.0**37}
    pd.DataFrame([{"node": "a", **capacity}]).to_parquet(history / "capacity.parquet", index=False)
    (history / "history.json").write_text(json.dumps({"time_zone": "UTC", "step": "30m"}))
    assert run(["train", "--history", str(history), "--models", str(directory / "models")]) == 0
    return directory / "models"
