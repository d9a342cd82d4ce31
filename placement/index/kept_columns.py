"""Columns that follow from what nodes have and what is requested of them: kept, and made again where that changed.

Pods of many services request the same few sizes. A batch changes as many nodes as it has pods, so the next service of
the same size has dozens of rows to work out instead of thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from base.arrays import Ints
from cluster.tables.state import ClusterState

_MOST: Final = 64
"""Columns that are kept, those asked for last: of 20,000 nodes 10 MB."""

WorkOut = Callable[[Ints | slice], Ints]
"""(n,) whole numbers of these rows, by allocatable and requested alone."""


class KeptColumns:
    """Needs no changes handed on: the state says which rows have changed."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._columns: dict[Hashable, tuple[Ints, int]] = {}  # values, and as of when

    def __contains__(self, key: Hashable) -> bool:
        """Whether a column is kept, up to date or not."""
        return key in self._columns

    def column(self, key: Hashable, work_out: WorkOut) -> Ints:
        """(n_rows,) as the tables are now, to be read only. key: names what `work_out` works out."""
        state = self._state
        now, n_rows = state.rows_version, state.n_rows
        kept = self._columns.pop(key, None)
        if kept is None or len(kept[0]) != n_rows:
            values = work_out(slice(0, n_rows))
        else:
            values, as_of = kept
            rows = state.rows_changed_since(as_of)
            if 2 * len(rows) > n_rows:
                values = work_out(slice(0, n_rows))
            elif len(rows):
                values[rows] = work_out(rows)
        self._columns[key] = values, now
        if len(self._columns) > _MOST:
            del self._columns[next(iter(self._columns))]
        return values
