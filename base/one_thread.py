"""Small models and single products on one thread: there more threads only wait for each other, or for more work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn


@contextmanager
def one_thread() -> Iterator[None]:
    """scikit-learn's OpenMP loops run on one thread inside; measured ten times faster on a busy machine."""
    with _libraries().limit(limits=1, user_api="openmp"):
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products run on one thread inside.

    OpenBLAS parts a product that takes a millisecond among all cores. Then each of its threads spins in case another
    product follows (THREAD_TIMEOUT in its Makefile.rule): 100 ms of CPU were measured. The limit is of the process.
    """
    with _blas().limit(limits=1):
        yield


@cache
def _blas() -> ThreadpoolController:
    """Return the libraries of matrix products that are loaded; numpy has loaded its own."""
    return ThreadpoolController().select(user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """Return all libraries that are loaded, found once: the search takes longer than a small fit. Every caller has
    loaded scikit-learn.
    """
    return ThreadpoolController()
