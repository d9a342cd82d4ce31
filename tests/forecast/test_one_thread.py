"""Products on one thread: inside only, and what held before holds afterwards."""

from __future__ import annotations

import numpy as np  # noqa: F401  loads the library that is limited
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from base.one_thread import one_blas_thread


def n_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_products_run_on_one_thread_inside() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {2}


def test_the_limit_ends_with_an_error() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ValueError, match="wrong"), one_blas_thread():
            raise ValueError("wrong")
        assert n_threads() == {2}
