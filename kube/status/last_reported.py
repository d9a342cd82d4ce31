"""What was told last about each pod, so that nobody is told the same again and again."""

from __future__ import annotations

from collections import OrderedDict


class LastReported:
    """By UID, for the `most` pods that were told about last. The caller has the lock and the clock.

    again_after : seconds after which the same may be told again
    """

    def __init__(self, most: int, *, again_after: float = float("inf")) -> None:
        self._most, self._again_after = most, again_after
        self._told: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, uid: str) -> bool:
        return uid in self._told

    def is_news(self, uid: str, text: str, now: float) -> bool:
        """Whether something else was told last, or this long ago."""
        last = self._told.get(uid)
        # The hash stands for the text: messages are long, and what is lost by a collision is one of them.
        return last is None or last[0] != hash(text) or not 0.0 <= now - last[1] < self._again_after

    def note(self, uid: str, text: str, now: float) -> None:
        """It has been told."""
        self._told[uid] = (hash(text), now)
        self._told.move_to_end(uid)
        if len(self._told) > self._most:
            self._told.popitem(last=False)

    def forget(self, uid: str) -> None:
        """There is nothing to tell about it any more."""
        self._told.pop(uid, None)
