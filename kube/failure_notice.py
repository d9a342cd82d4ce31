"""Failures that repeat: each is logged once, until the same work succeeds again, and kept by part of the work for
people to read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from base.errors import ForecastError


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


class Troubles:
    """Keeps one text per part of the work. For one thread. what: the work, in the log's words, such as `rebalancing`"""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        self._by_part: dict[str, str] = {}
        self._notice = FailureNotice(logger, f"{what} is held up", f"{what} goes on")

    def __str__(self) -> str:
        """Return all of them, for people; '' = nothing went wrong."""
        return "; ".join(dict.fromkeys(self._by_part.values()))

    def attempt(self, part: str, work: Callable[[], None]) -> bool:
        """Do a part of the work; returns whether it succeeded."""
        try:
            work()
        except ForecastError as error:
            self.note(part, str(error))
            return False
        self.note(part, "")
        return True

    def note(self, part: str, why: str) -> None:
        """Keep why a part of the work fails; '' = it succeeded, or nothing of it is due any more."""
        if why:
            self._by_part[part] = why
            self._notice.failed(why, part=part)
        else:
            self._by_part.pop(part, None)
            self._notice.succeeded(part=part)
