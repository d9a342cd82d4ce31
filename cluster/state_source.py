"""What keeps the tables up to date, as they see it: whether all was read, and how long ago anything was heard."""

from __future__ import annotations

from collections.abc import Callable, Mapping

State = tuple[bool, float | None, Mapping[str, str]]
"""Whether the cluster was read completely, unix seconds of the last contact (None = there was none), and words for
/v1/status."""


def _not_read() -> State:
    return False, None, {}


class StateSource:
    """Base of sources, and the one where others put objects into the tables. For any thread."""

    def __init__(self, state: Callable[[], State] = _not_read) -> None:
        self._state = state

    def state(self) -> State:
        """Return how it goes; quick."""
        return self._state()

    def read_again(self) -> Callable[[], bool]:
        """Have nodes and pods read anew, consistently.

        Returns a function that says whether the tables know everything that was written before this moment.
        """
        return lambda: True

    def pods_version(self) -> int:
        """Return the resourceVersion that the watch of pods has reached, 0 = unknown."""
        return 0

    def pod_event_version(self) -> int:
        """Return the resourceVersion of the last event of a pod, 0 = there was none. A list or a bookmark is none."""
        return 0
