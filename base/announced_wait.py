"""Says what a run waits for, while it waits: a server that takes a connection and never answers looks like a run that
does nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from base.redaction import redacted

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 4.0
"""A person who sees nothing for longer takes the run for dead; healthy servers answer sooner."""

_NEXT_SECONDS: Final = 30.0
"""Later lines say that the run still waits, without filling the log."""


@contextmanager
def announced_wait(what: str, longest_seconds: float | None = None) -> Iterator[None]:
    """Log a line when the block lasts 4 s, and another one each half minute.

    what            : the block waits for
    longest_seconds : after which the block ends; None = it has no limit of its own
    """
    ended, started = threading.Event(), time.monotonic()

    def speak() -> None:
        wait = FIRST_SECONDS
        while not ended.wait(wait):
            waited, wait = time.monotonic() - started, _NEXT_SECONDS
            until = {} if longest_seconds is None else {"seconds_left": max(0, round(longest_seconds - waited))}
            logger.warning("no answer yet", extra={"of": redacted(what), "waited_seconds": round(waited), **until})

    thread = threading.Thread(target=speak, name="announced-wait", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
