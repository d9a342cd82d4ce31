"""When a replica may decide: it leads, and has read what its predecessor wrote last.

    follows --leads--> reads anew --done--> decides --leads no more--> follows

The watch of a replica that waits may lag, or lie in a pause between two tries: on tables without the last bindings it
would overcommit nodes. So nodes and pods are listed once more, consistently, after the Lease was taken, and whatever
else says what a predecessor has given away. One that still runs has stopped writing by then (election.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Takeover:
    """Asked by the one thread that decides, before every unit."""

    def __init__(
        self,
        *,
        leads: Callable[[], bool],
        waits_for: Callable[[], str],
        read_again: Iterable[Callable[[], Callable[[], bool]]],
        begin: Callable[[], None],
    ) -> None:
        """
        waits_for  : what has to be read before the first unit, '' = nothing any more
        read_again : each begins to read a part of the cluster anew, and returns a function that says whether that is
                     done
        begin      : called each time when all is read, before the first unit
        """
        self._leads, self._waits_for, self._read_again, self._begin = leads, waits_for, tuple(read_again), begin
        self._under_way: list[Callable[[], bool]] | None = None
        self._decides = self._was_read = False

    def may_decide(self) -> bool:
        """Quick, but for the first time."""
        if not self._leads():
            self._under_way, self._decides = None, False
            return False
        if self._decides:
            return True
        if not self._was_read and self._waits_for():
            return False
        self._was_read = True
        if self._under_way is None:
            self._under_way = [begin() for begin in self._read_again]
        if not all(is_done() for is_done in self._under_way):
            return False
        self._begin()
        self._decides = True
        return True
