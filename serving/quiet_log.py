"""Log lines that clients cause: at most one of each kind every 10 s, with the number held back in between.

A client without a token can make a service meet the same fault thousands of times a second. The first line says what
happens; the metrics count the rest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager

_SECONDS = 10.0
_MOST_KINDS = 64
"""More kinds share one place, so a text that clients choose cannot become a line each time."""
_LIBRARIES = ("asyncio", "uvicorn.error")
"""They log bad HTTP, closed transports and failed TLS, once for each connection."""


class Quiet:
    """Decides which lines are logged."""

    def __init__(self, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock, self._lock = seconds, clock, threading.Lock()
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # when last logged, held back since

    def held_back(self, kind: Hashable) -> int | None:
        """How many of this kind were held back since the last that was logged; None = hold this one back, too."""
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
                kind = None
            now = self._clock()
            logged, held = self._kinds.get(kind, (-self._seconds, 0))
            if now - logged < self._seconds:
                self._kinds[kind] = logged, held + 1
                return None
            self._kinds[kind] = now, 0
            return held


class QuietLog:
    """A logger for what clients cause."""

    def __init__(self, logger: logging.Logger, quiet: Quiet | None = None) -> None:
        self._logger, self._quiet = logger, quiet or Quiet()

    def log(
        self,
        level: int,
        message: str,
        *facts: object,
        kind: Hashable = "",
        error: Exception | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """Log the line, unless one of its kind was logged just before. kind: in addition to level and message."""
        held = self._quiet.held_back((level, message, kind))
        if held is not None:
            self._logger.log(level, message + _more(held), *facts, exc_info=error, extra=extra)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """While it lasts, the libraries below us log as QuietLog does."""
    found = _QuietRecords()
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    for logger in loggers:
        logger.addFilter(found)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(found)


class _QuietRecords(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._quiet = Quiet()

    def filter(self, record: logging.LogRecord) -> bool:
        first, newline, rest = str(record.msg).partition("\n")  # asyncio names the connection in the lines below
        held = self._quiet.held_back((record.name, record.levelno, first))
        if held is not None:
            record.msg = f"{first}{_more(held)}{newline}{rest}"
        return held is not None


def _more(held: int) -> str:
    return f" ({held} more were not logged)" if held else ""
