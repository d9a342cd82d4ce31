"""A history directory in which a workflow engine starts every pod under a name of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from forecast.resources import CPU
from forecast.service_key import ServiceKey
from tests.forecast.job_histories import job_tables, run_rows
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles

N_DAYS = 8
ETL, BUILD = ServiceKey("shop", "Workflow", "etl-*"), ServiceKey("shop", "Job", "build-*")


def workflow(number: int, kind: str = "Workflow", name: str = "etl", hours: float = 0.5) -> pd.DataFrame:
    owner = f"{name}-{(number * 7919 + 65_536):05x}"
    start = pd.Timestamp("2026-03-02T02:00Z") + pd.Timedelta(days=number % N_DAYS, hours=number // N_DAYS)
    return run_rows(f"{kind}/{owner}", f"{owner}-pod", start, 60 * hours, 2.0)


def test_owners_that_ran_once_are_one_service_and_all_others_stay(tmp_path: Path) -> None:
    runs = [
        *(workflow(number) for number in range(16)),
        *(workflow(number, "Job", "build") for number in range(N_DAYS)),
        *(workflow(number, "Pod", "rare") for number in range(3)),
        workflow(20, "Pod", "long", hours=30),
        *(
            run_rows("Workflow/nightly-1a2b3c4d", f"n-{day}", pd.Timestamp(f"2026-03-0{day}"), 20, 1.0)
            for day in (3, 6)
        ),
    ]
    runs[-2:] = [rows.assign(timestamp=rows["timestamp"].dt.tz_localize("UTC")) for rows in runs[-2:]]
    files = HistoryFiles.open(job_tables(runs, days=N_DAYS).write(tmp_path))
    history = files.history()
    names = {service.name for service in history.services}
    assert {ETL, BUILD} <= set(history.services)
    assert len(history.services) == 2 + 2 + 3 + 1 + 1, "cart, db; two groups; rare, long, nightly"
    assert "nightly-1a2b3c4d" in names and "etl-*" in names
    assert files.report.total(CleaningCause.ONE_OFF) == 16 + N_DAYS

    etl = history.services.index(ETL)
    assert np.count_nonzero(history.runs.service == etl) == 16
    assert np.nanmax(history.replicas[etl]) <= 1.0 and np.nanmax(history.usage_per_pod[etl, CPU]) == 2.0
    assert history.one_off_usage is not None
    used = history.one_off_usage[:, CPU].sum(axis=0)  # (n_days, 48)
    assert used[:, 4].min() > 3.0 and used[:, 4].max() <= 4.0, "etl and build"
    assert used[:, 12:].max() == 0.0

    pods = HistoryFiles.open(tmp_path).pod_usage(files.days[0], files.days[-1])
    assert pods.services == history.services, "both number services alike"


def test_without_any_nothing_changes(tmp_path: Path) -> None:
    history = HistoryFiles.open(job_tables([workflow(0)], days=2).write(tmp_path)).history()
    assert history.one_off_usage is None and not any(service.is_group for service in history.services)
