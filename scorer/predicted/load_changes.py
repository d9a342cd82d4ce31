"""What happened to the rows of the predicted load since somebody last looked: what is derived from them is mended, not
made anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from forecast.arrays import Ints

__all__ = ["ANYTHING", "LoadChanges", "RowChanges"]

ANYTHING: Final = -1
"""In place of a curve: the row is to be read again."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """One entry per change, oldest first: the row, the curve of the pods that came (or ANYTHING), and how many."""

    rows: Sequence[int]
    curves: Sequence[int]
    pods: Sequence[float]


class LoadChanges:
    """A log of changed rows. Readers keep a position in it; those that fall too far behind must look at every row."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._curves: list[int] = []
        self._pods: list[float] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything: the number of changes so far."""
        return self._dropped + len(self._rows)

    def append(self, row: int, *, longest: int, curve: int = ANYTHING, pods: float = 0.0) -> None:
        """A row has changed: so many more pods of a curve are there. longest: changes worth remembering, about as many
        as there are rows."""
        self._rows.append(row)
        self._curves.append(curve)
        self._pods.append(pods)
        self._shorten(longest)

    def extend(self, rows: Sequence[int], *, longest: int, curve: int) -> None:
        """The same for one more pod on each row, in this order."""
        self._rows.extend(rows)
        self._curves.extend([curve] * len(rows))
        self._pods.extend([1.0] * len(rows))
        self._shorten(longest)

    def rows_since(self, position: int) -> Ints | None:
        """The rows that changed after `position`, each once; None = they are not remembered, look at all."""
        if position < self._dropped:
            return None
        # A set, not np.unique: usually there are a few dozen.
        missed = set(self._rows[position - self._dropped :])
        return np.fromiter(missed, dtype=np.int64, count=len(missed))

    def since(self, position: int) -> RowChanges | None:
        """What happened after `position`; None = it is not remembered, look at all rows."""
        if position < self._dropped:
            return None
        start = position - self._dropped
        return RowChanges(self._rows[start:], self._curves[start:], self._pods[start:])

    def _shorten(self, longest: int) -> None:
        if len(self._rows) > 2 * max(longest, 64):
            excess = len(self._rows) - max(longest, 64)
            del self._rows[:excess], self._curves[:excess], self._pods[:excess]
            self._dropped += excess
