"""Which devices were chosen for pods that are placed here, until these are seen bound and say so themselves.

    assumed --made--> remembered --bound, and it says which devices it has--> forgotten
                          |------taken back, deleted------------------------> forgotten
                          |------bound, and does not say--> remembered as long as it sits
                          '------bound somewhere else---------------------> forgotten

Preemption takes pods out of the tables and puts them back to see what happens then: what was chosen for them is the
same afterwards. From here that looks as if a pod were deleted; so choices of bound pods that leave are kept aside for a
while, and count only for the very same pod on the very same node.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_ASIDE: Final = 4096


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """devices: none = it was placed where there was no room; memory: of such a device, as the sharing plugin counts."""

    node: str
    devices: tuple[int, ...]
    memory: int


class Choices:
    """By UID of the pod. is_assumed: whether it is not bound yet, as far as is known."""

    def __init__(self, is_assumed: Callable[[str], bool]) -> None:
        self._is_assumed = is_assumed
        self._made: dict[str, DeviceChoice] = {}
        self._aside: OrderedDict[str, DeviceChoice] = OrderedDict()

    def __contains__(self, uid: str) -> bool:
        """Whether one is remembered for a pod that sits, or is assumed to."""
        return uid in self._made

    def __len__(self) -> int:
        """Remembered ones, without those kept aside."""
        return len(self._made)

    def get(self, uid: str) -> DeviceChoice | None:
        """From any thread."""
        return self._made.get(uid)

    def make(self, uid: str, choice: DeviceChoice) -> None:
        """For a pod that is assumed."""
        self._made[uid] = choice

    def of_bound(self, uid: str, node: str) -> DeviceChoice | None:
        """Of a pod that sits on the node and does not say which devices it has. What was chosen elsewhere is void."""
        choice = self._made.pop(uid, None) or self._aside.pop(uid, None)
        if choice is None or choice.node != node:
            return None
        self._made[uid] = choice
        return choice

    def left(self, uid: str, *, was_assumed: bool) -> None:
        """It sits nowhere, maybe only for a moment; was_assumed: it was never seen bound there."""
        if uid in self._made and not self._is_assumed(uid):
            choice = self._made.pop(uid)
            if not was_assumed:
                self._aside[uid] = choice
                if len(self._aside) > _MOST_ASIDE:
                    self._aside.popitem(last=False)

    def forget(self, uid: str) -> None:
        """It says itself which devices it has."""
        self._made.pop(uid, None)
        self._aside.pop(uid, None)

    def keep_only(self, sits: Callable[[str], bool]) -> None:
        """Of pods that sit, or are assumed to."""
        self._made = {uid: one for uid, one in self._made.items() if sits(uid) or self._is_assumed(uid)}
