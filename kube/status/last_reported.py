"""The last report about each pod, so that the same is not reported again and again."""

from __future__ import annotations

from collections import OrderedDict


class LastReported:
    """By UID, for the `most` pods that were reported last. The caller has the lock and the clock.

    again_after : seconds after which the same may be reported again
    """

    def __init__(self, most: int, *, again_after: float = float("inf")) -> None:
        self._most, self._again_after = most, again_after
        self._told: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, uid: str) -> bool:
        return uid in self._told

    def is_news(self, uid: str, text: str, now: float) -> bool:
        """Return whether the last report was another one, or is older than `again_after`."""
        last = self._told.get(uid)
        # The hash stands for the text: messages are long, and what is lost by a collision is one of them.
        return last is None or last[0] != hash(text) or not 0.0 <= now - last[1] < self._again_after

    def note(self, uid: str, text: str, now: float) -> None:
        """Remember that the text has been reported."""
        self._told[uid] = (hash(text), now)
        self._told.move_to_end(uid)
        if len(self._told) > self._most:
            self._told.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Drop the last report of a pod that is bound or gone."""
        self._told.pop(uid, None)
