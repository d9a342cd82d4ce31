"""Per-series work gives the same model here and in processes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from base.parallel import run_all
from forecast.fit import fit
from forecast.model_artefact import ARRAYS
from tests.synthetic import synthetic_history

HISTORY = synthetic_history(n_services=16, n_days=15)


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


def test_processes_give_the_same_model() -> None:
    expected = fit(HISTORY)
    with parallel_config(backend="loky", n_jobs=2):
        assert os.getpid() not in {pid for _, pid in run_all(square, ((n,) for n in range(5)))}
        model = fit(HISTORY)
    for spec in ARRAYS:
        np.testing.assert_array_equal(getattr(model, spec.name), getattr(expected, spec.name), err_msg=spec.name)
