"""Which rows of a table changed since somebody last looked: what is derived from it is mended, not made anew."""

from __future__ import annotations

import numpy as np

from forecast.arrays import Ints

__all__ = ["ChangedRows"]


class ChangedRows:
    """A log of changed rows. Readers keep a position in it; those that fall too far behind must look at every row."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything: the number of changes so far."""
        return self._dropped + len(self._rows)

    def append(self, row: int, *, longest: int) -> None:
        """A row has changed. longest: changes worth remembering, about as many as there are rows."""
        self._rows.append(row)
        if len(self._rows) > 2 * max(longest, 64):
            half = len(self._rows) // 2
            del self._rows[:half]
            self._dropped += half

    def since(self, position: int) -> Ints | None:
        """The rows that changed after `position`, each once; None = they are not remembered, look at all."""
        if position < self._dropped:
            return None
        # A set, not np.unique: usually there are a few dozen.
        missed = set(self._rows[position - self._dropped :])
        return np.fromiter(missed, dtype=np.int64, count=len(missed))
