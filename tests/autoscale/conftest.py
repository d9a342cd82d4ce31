"""A service whose load has tripled an hour from now on every day so far, as a published model."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.resources import RESOURCES
from forecast_scheduler.cli import run

DAYS = 14
QUIET, BUSY = 0.5, 1.5
"""Cores of each of two pods, now and in the four hours that begin an hour from now."""


@pytest.fixture(scope="session")
def ramp_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with the model of the days before today."""
    directory = tmp_path_factory.mktemp("ramp")
    history = directory / "history"
    history.mkdir()
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    slot = (now.hour * 60 + now.minute) // SLOT_MINUTES
    cores = np.full(SLOTS_PER_DAY, QUIET)
    cores[(slot + 2 + np.arange(8)) % SLOTS_PER_DAY] = BUSY
    times = [today - timedelta(days=DAYS) + n * timedelta(minutes=SLOT_MINUTES) for n in range(DAYS * SLOTS_PER_DAY)]
    columns = [one.column for one in RESOURCES]

    def usage(scale: float) -> pd.DataFrame:
        frame = pd.DataFrame(dict.fromkeys(columns, float("nan")), index=range(len(times)))
        frame["timestamp"] = pd.to_datetime(pd.Series(times), utc=True)
        frame["cpu_cores"] = np.tile(cores, DAYS) * scale
        frame["memory_bytes"] = 2.0**30 * scale
        return frame

    pods = [f"web-5d9c7b6f4d-{number:05d}" for number in range(2)]
    of_pods = [usage(1).assign(namespace="shop", service="Deployment/web", pod=pod, node="a") for pod in pods]
    pd.concat(of_pods).to_parquet(history / "usage.parquet", index=False)
    usage(2).assign(node="a").to_parquet(history / "nodes.parquet", index=False)
    requests = {"request_cpu_cores": 1.0, "request_memory_bytes": 2.0**30}
    pd.DataFrame(
        [{"namespace": "shop", "service": "Deployment/web", "pod": pod, **requests} for pod in pods]
    ).to_parquet(history / "pods.parquet", index=False)
    capacity = dict.fromkeys(columns, float("nan")) | {"cpu_cores": 64.0, "memory_bytes": 2.0**37}
    pd.DataFrame([{"node": "a", **capacity}]).to_parquet(history / "capacity.parquet", index=False)
    (history / "history.json").write_text(json.dumps({"time_zone": "UTC", "step": "30m"}))
    assert run(["train", "--history", str(history), "--models", str(directory / "models")]) == 0
    return directory / "models"
