"""Capacities of the nodes of a live cluster in columns, one row per node; more rows than used."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.predicted.capacity import NodeCapacity, UnreadCapacity
from cluster.predicted.growing_arrays import grown
from forecast.resources import RESOURCES


class CapacityColumns:
    """What each node can do, which of that the trainer assumed, and annotations with mistakes.

    amount  : (n_rows, n_resources) base units, NaN = not a limit
    assumed : (n_rows, n_resources)
    """

    def __init__(self) -> None:
        self.amount: Floats = np.full((0, len(RESOURCES)), np.nan)
        self.assumed: Bools = np.zeros((0, len(RESOURCES)), dtype=bool)
        self._unread: dict[int, UnreadCapacity] = {}

    def ensure(self, n_rows: int) -> None:
        """Make room for at least `n_rows`."""
        self.amount, self.assumed = grown(self.amount, n_rows, np.nan), grown(self.assumed, n_rows, False)

    def put(self, row: int, node: str, known: NodeCapacity) -> None:
        """Keep what is known of the node in a row."""
        self.clear(row)
        self.amount[row], self.assumed[row] = known.amount, known.assumed
        if known.mistakes:
            self._unread[row] = UnreadCapacity(node, known.mistakes)

    def put_all(self, rows: Ints | list[int], amount: Floats, assumed: Bools) -> None:
        """Keep other capacities for nodes whose annotations are as they were; amount, assumed: of all rows."""
        self.amount[rows], self.assumed[rows] = amount[rows], assumed[rows]

    def clear(self, row: int) -> None:
        """Forget the node in a row."""
        self.amount[row], self.assumed[row] = np.nan, False
        self._unread.pop(row, None)

    def unread(self) -> tuple[UnreadCapacity, ...]:
        """Returns the nodes whose capacity annotation has entries that cannot be read; its other entries are in use.

        In the order of their rows: a node that changes in another way makes no difference.
        """
        return tuple(self._unread[row] for row in sorted(self._unread))
