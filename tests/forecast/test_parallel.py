"""Per-series work gives the same model here, in processes, and on a Dask cluster of which a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import settings
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from forecast.fit import fit
from forecast.model import PeakModel
from forecast.model_artefact import ARRAYS
from forecast.parallel import run_all
from tests.synthetic import synthetic_history

# More services than workers are enough to see that each result finds its place.
HISTORY = (
    synthetic_history(n_services=40, n_days=21)
    if settings.get_current_profile_name() == "long"
    else synthetic_history(n_services=16, n_days=15)
)


@pytest.fixture(scope="module")
def expected() -> PeakModel:
    return fit(HISTORY)


@contextmanager
def dask_cluster() -> Iterator[Client]:
    """A real scheduler and two real worker processes on loopback."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def same(model: PeakModel, expected: PeakModel) -> None:
    for spec in ARRAYS:
        np.testing.assert_array_equal(getattr(model, spec.name), getattr(expected, spec.name), err_msg=spec.name)


@dataclass
class KillsOneWorker:
    """A progress callback that kills a worker as soon as the first piece of work has come back."""

    client: Client
    killed: list[int] = field(default_factory=list)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not self.killed and stage == "select predictors":
            victim = next(iter(self.client.run(os.getpid).values()))
            self.killed.append(victim)
            os.kill(victim, signal.SIGKILL)


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def test_results_come_in_the_order_of_the_arguments() -> None:
    assert [result for result, _ in run_all(square, ((n,) for n in range(5)))] == [0, 1, 4, 9, 16]
    assert {pid for _, pid in run_all(square, ((n,) for n in range(5)))} == {os.getpid()}


class FinishedListsOnly(ThreadingBackend):
    """Runs pieces in threads, and like Dask's backend refuses to hand out one result at a time."""

    supports_return_generator = False

    def effective_n_jobs(self, n_jobs: int) -> int:
        return 5


def test_a_backend_that_returns_finished_lists_is_given_a_few_pieces_for_each_worker() -> None:
    register_parallel_backend("finished-lists-only", FinishedListsOnly)
    begun: list[int] = []

    def arguments() -> Iterator[tuple[int]]:
        for n in range(50):
            begun.append(n)
            yield (n,)

    with parallel_config(backend="finished-lists-only"):
        results = run_all(square, arguments())
        assert next(results)[0] == 0
        assert len(begun) == 20
        assert [result for result, _ in results] == [n * n for n in range(1, 50)]


def test_processes_give_the_same_model(expected: PeakModel) -> None:
    with parallel_config(backend="loky", n_jobs=2):
        assert os.getpid() not in {pid for _, pid in run_all(square, ((n,) for n in range(5)))}
        same(fit(HISTORY), expected)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_dask_cluster_gives_the_same_model_also_when_a_worker_is_killed(expected: PeakModel) -> None:
    with dask_cluster() as client, parallel_config(backend="dask"):
        workers = set(client.run(os.getpid).values())
        assert {pid for _, pid in run_all(square, ((n,) for n in range(8)))} <= workers
        same(fit(HISTORY), expected)
        progress = KillsOneWorker(client)
        same(fit(HISTORY, progress=progress), expected)
        assert progress.killed
        client.wait_for_workers(2, timeout=60)
        assert set(client.run(os.getpid).values()) != workers
