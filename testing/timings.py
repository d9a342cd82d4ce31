"""How long this process has waited for what many tests share: servers that start, models that are fitted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_spent: dict[str, tuple[int, float]] = {}


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Add the seconds of the context to those of `what`, such as "Prometheus"."""
    began = time.perf_counter()
    try:
        yield
    finally:
        n, seconds = _spent.get(what, (0, 0.0))
        _spent[what] = n + 1, seconds + time.perf_counter() - began


def taken() -> dict[str, tuple[int, float]]:
    """Return times and seconds by name since the last call."""
    found = dict(_spent)
    _spent.clear()
    return found
