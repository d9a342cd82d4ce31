"""Where per-series work goes, and what a wrong answer to that question says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from distributed import LocalCluster

from base.errors import InputError
from base.parallel import run_all
from forecast.published_models import Registry
from forecast_scheduler.cli import run
from forecast_scheduler.commands.train_night import work_on
from tests.forecast_scheduler.small_history import small_tables


def process_of(_: int) -> int:
    return os.getpid()


def processes() -> set[int]:
    return set(run_all(process_of, ((n,) for n in range(6))))


def test_work_stays_in_this_process_unless_loky_takes_it_to_others() -> None:
    with work_on(None, -1, None):
        assert processes() == {os.getpid()}
    with work_on("loky", 2, None):
        assert os.getpid() not in processes()


@pytest.mark.parametrize(
    ("backend", "scheduler", "message"),
    [
        ("spark_typo", None, "backend 'spark_typo' is not known to joblib: use loky, threading or dask"),
        ("dask", None, "backend dask needs a cluster: pass --dask-scheduler"),
        ("loky", "tcp://127.0.0.1:1", "does not go with --backend loky"),
        (None, "tcp://127.0.0.1:1", "pass --backend dask, too"),
        ("dask", "nonsense", "does not answer"),
    ],
)
def test_a_wrong_choice_is_told(backend: str | None, scheduler: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message), work_on(backend, -1, scheduler):
        pass


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_train_runs_on_an_existing_cluster(tmp_path: Path) -> None:
    history = small_tables().write(tmp_path / "history")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        command = ["train", "--history", str(history), "--models", str(tmp_path / "on-dask"), "--backend", "dask"]
        assert run([*command, "--dask-scheduler", cluster.scheduler_address]) == 0
    assert run(["train", "--history", str(history), "--models", str(tmp_path / "here")]) == 0
    on_dask, here = (Registry(str(tmp_path / place)).load() for place in ("on-dask", "here"))
    for name, array in here.arrays.items():
        assert array.tobytes() == on_dask.arrays[name].tobytes(), name
