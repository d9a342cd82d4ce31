"""Small models on one thread: with a few thousand rows more threads only wait for each other."""

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


@cache
def _libraries() -> ThreadpoolController:
    """Return all libraries that are loaded, found once: the search takes longer than a small fit. Every caller has
    loaded scikit-learn.
    """
    return ThreadpoolController()
