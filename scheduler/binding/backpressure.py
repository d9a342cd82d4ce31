"""When the loop pauses because bindings are behind."""

from __future__ import annotations


class Backpressure:
    """Begins at `most` bindings and ends at half of it: who decides later knows more, and many pods at once take less
    time than few at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._is_on = False

    def is_on(self, unfinished: int) -> bool:
        """Return whether nothing more is to be decided. unfinished: bindings that wait or are under way"""
        self._is_on = unfinished >= (-(-self._most // 2) if self._is_on else self._most)
        return self._is_on
