"""Logs a failure that repeats once, until the same work succeeds again."""

from __future__ import annotations

import logging


class FailureNotice:
    """One per kind of work. The caller has the lock.

    failing : text of the warning
    again   : text of the line that ends it; "" = there is none
    """

    def __init__(self, logger: logging.Logger, failing: str, again: str = "") -> None:
        self._logger, self._failing, self._again = logger, failing, again
        self._fails: set[str] = set()

    def failed(self, why: str, *, part: str = "", **extra: object) -> None:
        """Log a warning with the reason, unless this part of the work has not succeeded since the last one."""
        if part not in self._fails:
            self._fails.add(part)
            self._logger.warning(self._failing, extra={"why": why, **extra})

    def succeeded(self, *, part: str = "", **extra: object) -> None:
        """Log that this part of the work succeeds again, if it failed before."""
        if part in self._fails:
            self._fails.discard(part)
            if self._again:
                self._logger.info(self._again, extra=extra)
