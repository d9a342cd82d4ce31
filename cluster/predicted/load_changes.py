"""Changes of the rows of the predicted load since the last look: derived values are updated, not made anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats32, Ints

ANYTHING: Final = -1
"""In place of a curve: the row is to be read again."""

NEVER: Final = -1
"""The position of a reader that has seen nothing."""

_SHORTEST: Final = 64


@dataclass(frozen=True, slots=True)
class RowChanges:
    """(n_changes,) each, oldest first: the row, the curve of the pods that came (or ANYTHING), and how many.

    Valid until the next change.
    """

    rows: Ints
    curves: Ints
    pods: Floats32


class LoadChanges:
    """A log of changed rows. Readers keep a position in it; those that fall too far behind must look at every row."""

    def __init__(self) -> None:
        self._rows, self._curves = np.zeros(4 * _SHORTEST, dtype=np.int64), np.zeros(4 * _SHORTEST, dtype=np.int64)
        self._pods = np.zeros(4 * _SHORTEST, dtype=np.float32)
        self._length = self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything: the number of changes so far."""
        return self._dropped + self._length

    def append(self, row: int, *, longest: int, curve: int = ANYTHING, pods: float = 0.0) -> None:
        """Note that a row has `pods` more pods of a curve. longest: changes worth remembering, about as many as there
        are rows.
        """
        at = self._room_for(1, longest)
        self._rows[at], self._curves[at], self._pods[at] = row, curve, pods

    def extend(self, rows: Sequence[int], *, longest: int, curve: int) -> None:
        """The same for one more pod on each row, in this order."""
        most = max(longest, _SHORTEST)
        if len(rows) > most:
            self._dropped += self._length + len(rows) - most
            self._length, rows = 0, rows[-most:]
        at = self._room_for(len(rows), longest)
        end = at + len(rows)
        self._rows[at:end], self._curves[at:end], self._pods[at:end] = rows, curve, 1.0

    def rows_since(self, position: int) -> Ints | None:
        """The rows that changed after `position`, each once; None = they are not remembered, look at all."""
        changes = self.since(position)
        if changes is None:
            return None
        # A set, not np.unique: usually there are a few dozen.
        missed = set(changes.rows.tolist())
        return np.fromiter(missed, dtype=np.int64, count=len(missed))

    def since(self, position: int) -> RowChanges | None:
        """What happened after `position`; None = it is not remembered, look at all rows."""
        if position < self._dropped:
            return None
        which = slice(position - self._dropped, self._length)
        return RowChanges(self._rows[which], self._curves[which], self._pods[which])

    def _room_for(self, count: int, longest: int) -> int:
        """The place of the next entry; half of what is remembered goes where there is too much."""
        most = max(longest, _SHORTEST)
        if self._length + count > 2 * most:
            keep = min(self._length, most)
            for table in (self._rows, self._curves, self._pods):
                table[:keep] = table[self._length - keep : self._length].copy()
            self._dropped += self._length - keep
            self._length = keep
        at, self._length = self._length, self._length + count
        if self._length > len(self._rows):
            size = self._length + self._length // 2
            self._rows, self._curves = np.resize(self._rows, size), np.resize(self._curves, size)
            self._pods = np.resize(self._pods, size)
        return at
