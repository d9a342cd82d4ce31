"""The scorer's tables as other components read them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from cluster.tracking import TrackedCluster


class ReadableTables(Protocol):
    """cluster.live_tables.LiveTables."""

    def reading(self) -> AbstractContextManager[TrackedCluster]:
        """The tables, which do not change meanwhile."""
