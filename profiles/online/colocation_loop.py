"""Co-location as a scheduler process starts it: the filter, the tables it reads, the thread that keeps its bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from base.periodic_task import PeriodicTask
from cluster.live_tables import LiveTables
from profiles.online.colocation_filter import DeclaredUse, PredictedGap
from profiles.online.colocation_settings import GapOptions
from profiles.online.upper_bounds import UpperBounds

_REFRESH_SECONDS: Final = 60.0
_LARGEST_SHARE: Final = 0.2
"""Of the time that the bounds may take up, on a large cluster."""


class Colocation:
    """`filter` is for the online profile. Made before the cluster is read, so that its tables follow from the start.

    bounds : the bounds in effect, for other readers
    listeners : called without a lock when the bounds were made anew: the filter may let pods in that it rejected
    """

    def __init__(
        self,
        tables: LiveTables,
        options: GapOptions | None = None,
        *,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        after : whether the cluster has been read
        clock : seconds from any moment
        """
        self.options = options or GapOptions()
        self.listeners: list[Callable[[], None]] = []
        self._tables, self._clock = tables, clock
        self._refreshed: float | None = None
        self.bounds = UpperBounds(self.options.hours)
        with tables.reading() as cluster:
            self._declared_use = DeclaredUse(cluster.state)
            tables.attach((), self._declared_use)
        self.filter = self.gap(self.options)
        self._upkeep = PeriodicTask("gap-bounds", 1.0, self.keep_up, after=after, largest_share=_LARGEST_SHARE)

    def gap(self, options: GapOptions) -> PredictedGap:
        """Another filter by the same bounds. options: they look no further ahead."""
        return PredictedGap(options, self.bounds, self._declared_use)

    def start(self) -> None:
        self._upkeep.start()

    def stop(self) -> None:
        self._upkeep.stop()

    def keep_up(self) -> None:
        """Make the bounds anew if another model or day has come, or a minute has passed."""
        now = self._clock()
        with self._tables.reading() as cluster:
            is_current = self.bounds.is_for(cluster)
        if is_current and self._refreshed is not None and now - self._refreshed < _REFRESH_SECONDS:
            return
        are_new = self.bounds.refresh(self._tables)
        self._refreshed = now
        if are_new:
            for listener in self.listeners:
                listener()
