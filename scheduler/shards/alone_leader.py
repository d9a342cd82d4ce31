"""Whether this replica decides alone about pods that only one may decide about: it leads, and knows all pods.

asked --> follows all pods --all are read--> decides alone --not asked for long--> leaves out events again
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from kube.leader_election.lease import running_time

_ALONE_SECONDS: Final = 120.0
"""For which a leader follows all pods after the last one that only it may decide about."""

_ENDS_SECONDS: Final = 3.0
"""Before that time is over it is looked whether there is another such pod: after it all would have to be read anew."""


class AloneLeader:
    """For any thread. leads: the Lease says so; clock: seconds that pass evenly."""

    def __init__(self, leads: Callable[[], bool], *, clock: Callable[[], float] = running_time) -> None:
        self._leads, self._clock = leads, clock
        self._lock = threading.Lock()
        self._asked = -float("inf")
        self._is_read: Callable[[], bool] | None = None  # whether all is known that the last leader wrote
        self._n_left_out = 0  # how often an event might be left out

    def decides_alone(self) -> bool:
        """Return whether this replica leads, and knows all pods, those that the last leader has placed, too. It begins
        to follow all of them when this is asked, and ends when it was not asked for long."""
        self.ask()
        return self._leads() and self.knows_all()

    def follows_all(self) -> bool:
        """Return whether no event of a pod may be left out. Once one may, all pods have to be read before this replica
        decides alone again: it may be asked, or lead again, before the next step."""
        leads, now = self._leads(), self._clock()
        with self._lock:
            follows = leads and now - self._asked < _ALONE_SECONDS
            if not follows:
                self._is_read = None
                self._n_left_out += 1
        return follows

    def knows_all(self) -> bool:
        """Return whether all pods were read since this replica has to know them."""
        with self._lock:
            is_read = self._is_read
        return is_read is not None and is_read()

    def ends_soon(self) -> bool:
        """Return whether the next steps may be too late to go on following all pods."""
        leads, now = self._leads(), self._clock()
        with self._lock:
            return self._is_read is not None and leads and self._asked + _ALONE_SECONDS - now < _ENDS_SECONDS

    def ask(self) -> None:
        """There is a pod that only the leader may decide about."""
        now = self._clock()
        with self._lock:
            self._asked = now

    def begin(self, read_again: Callable[[], Callable[[], bool]]) -> None:
        """Have all pods read if this replica has to know them, and does not yet. For one thread."""
        if not self.follows_all():
            return
        with self._lock:
            is_begun, n_left_out = self._is_read is not None, self._n_left_out
        if not is_begun:
            is_read = read_again()
            with self._lock:
                if n_left_out == self._n_left_out:
                    self._is_read = is_read
