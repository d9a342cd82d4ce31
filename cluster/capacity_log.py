"""Log lines about capacities: one line for all nodes, and only when it changes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from cluster.predicted.capacity import UnreadCapacity

logger = logging.getLogger(__name__)

_UNREAD_SHOWN: Final = 5


class CapacityLog:
    """Remembers what it said last."""

    def __init__(self) -> None:
        self._gaps = ""
        self._unread: tuple[UnreadCapacity, ...] = ()
        self._beyond: tuple[str, ...] = ()

    def tell_gaps(self, gaps: str) -> None:
        """Log which resources have no capacity. gaps: see forecast.capacity_gaps, "" = none."""
        if gaps and gaps != self._gaps:
            logger.warning(gaps)
        self._gaps = gaps

    def tell_unread(self, unread: Sequence[UnreadCapacity]) -> None:
        """Log which capacity annotations have entries that cannot be read."""
        if unread and tuple(unread) != self._unread:
            logger.warning(
                "%d nodes have a capacity annotation with entries that cannot be read; the other entries count",
                len(unread),
                extra={"nodes": "; ".join(f"{one.node}: {'; '.join(one.mistakes)}" for one in unread[:_UNREAD_SHOWN])},
            )
        self._unread = tuple(unread)

    def tell_beyond(self, pods: Sequence[str]) -> None:
        """Log which pods request or declare more than any node could give them."""
        if pods and tuple(pods) != self._beyond:
            logger.warning(
                "%d pods request or declare more than their node has, or than any node: they count as what it has; "
                "correct their requests or the annotation virtual-request",
                len(pods),
                extra={"pods": ", ".join(pods[:_UNREAD_SHOWN])},
            )
        self._beyond = tuple(pods)
