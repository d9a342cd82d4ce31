"""All units there are, by key, and which pod is of which."""

from __future__ import annotations

from scheduler.queue.queued import QueuedPod, Unit
from scheduler.queue.unit import UnitOf, Units


class UnitTable:
    """A unit is there while there are pods of it."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._by_key: dict[str, dict[int | None, Unit]] = {}  # then by priority; None = a gang
        self._n_units = 0

    def join(self, queued: QueuedPod) -> None:
        """A pod that is of none yet."""
        self._put(queued, self._units.unit_of(queued.pod))

    def quit(self, queued: QueuedPod) -> None:
        """It is of none any more."""
        unit = queued.home
        del unit.members[queued.pod.uid]
        if not unit.members:
            by_priority = self._by_key[unit.key]
            del by_priority[unit.priority]
            if not by_priority:
                del self._by_key[unit.key]

    def ask_again(self, queued: QueuedPod) -> Unit | None:
        """Which unit a pod is of now; the unit it was of, if that is another one, which it has left then."""
        of, unit = self._units.unit_of(queued.pod), queued.home
        is_same = of.key == unit.key and (None if of.is_gang else queued.pod.priority) == unit.priority
        if is_same and (of.is_gang or of.flow == unit.flow):
            unit.follow(of)
            return None
        self.quit(queued)
        self._put(queued, of)
        return unit

    def of_key(self, key: str) -> list[Unit]:
        """A gang, or the units of a controller, one for each priority."""
        return list(self._by_key.get(key, {}).values())

    def _put(self, queued: QueuedPod, of: UnitOf) -> None:
        priority = None if of.is_gang else queued.pod.priority
        by_priority = self._by_key.get(of.key)
        if by_priority is None:
            by_priority = self._by_key[of.key] = {}
        unit = by_priority.get(priority)
        if unit is None:
            unit = by_priority[priority] = Unit(of, self._n_units, priority)
            self._n_units += 1
        unit.follow(of)
        unit.members[queued.pod.uid] = queued
        queued.unit, queued.home = of.key, unit
