"""A job done again and again by a thread of its own: one that fails is logged, and done again all the same."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class PeriodicTask:
    """Runs a function at an interval, in a thread, until stopped."""

    def __init__(
        self,
        name: str,
        seconds: float,
        job: Callable[[], object],
        *,
        after: Callable[[], bool] = lambda: True,
        largest_share: float = 1.0,
    ) -> None:
        """
        after         : what has to be true before the first time
        largest_share : of the time that the job may take up; one that waits for others rather than computes has 1
        """
        self._name, self._seconds, self._job, self._after = name, seconds, job, after
        self._largest_share = largest_share
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"every-{name}", daemon=True)

    def start(self) -> None:
        """Begin; the first time is right away."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End; a job under way is waited for, `timeout` seconds at most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        pause, failures = 0.0, 0
        while not self._may_begin() and not self._stop.wait(0.1):
            pass
        while not self._stop.wait(pause):
            began = time.monotonic()
            try:
                self._job()
                failures = 0
            except Exception:
                failures += 1
                # The 1st, 2nd, 4th, 8th, ... in a row: what fails every second must not fill the log.
                if failures & (failures - 1) == 0:
                    fields = {"job": self._name, "failures": failures}
                    logger.exception("a periodic task failed; it runs again at its next turn", extra=fields)
            took = time.monotonic() - began
            pause = max(self._seconds - took, took / self._largest_share - took, 0.0)

    def _may_begin(self) -> bool:
        try:
            return self._after()
        except Exception:
            logger.exception("cannot decide whether a periodic task may begin", extra={"job": self._name})
            return False
