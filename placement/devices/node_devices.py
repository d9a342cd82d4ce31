"""The devices of one node, who has which of them, and which a pod gets by default. No I/O, no clock; the same holders
give the same devices.

    fixed   pods whose devices are known: they say so themselves, or these were chosen for them. They keep them,
            whatever else is there, also where two have the same, or the device is gone
    loose   pods whose devices are unknown: whole devices first, then shares, the oldest first, each where there is room
            next to the fixed ones; where there is none, where the most is left

Nothing depends on the order in which pods come and go.

Where devices have M units of memory that pods ask for, a device is counted as 1000 * M parts: a thousandth is M of
them, a unit of memory 1000. So three pods with a third of the memory fill a device to the last part.

Shares go where the least is left over (best fit, as allocateGPUID in pkg/cache/nodeinfo.go of
gpushare-scheduler-extender chooses), so that whole devices stay whole; whole ones are the first that are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placement.devices.declared_devices import NO_CARDS, NodeCards
from placement.devices.device_demand import WHOLE, GpuDemand


def best_fit(free: Sequence[int], count: int, wanted: int, whole: int = WHOLE) -> tuple[int, ...] | None:
    """Return `count` devices with `wanted` free each, ascending; None = there are fewer.

    free   : (n_devices,) in thousandths; less than 0 = there is no such device
    wanted : of each of them
    whole  : all of a device; another number where another unit is used
    """
    if wanted == whole:
        whole_ones = [device for device, left in enumerate(free) if left == whole]
        return tuple(whole_ones[:count]) if len(whole_ones) >= count else None
    fitting = [(left, device) for device, left in enumerate(free) if left >= wanted]
    if len(fitting) < count:
        return None
    return tuple(sorted(device for _, device in sorted(fitting)[:count]))


def least_full(free: Sequence[int], count: int) -> tuple[int, ...]:
    """The `count` devices with the most left, or as many as there are, ascending: for pods that sit there although
    nothing fits any more."""
    there = [(-left, device) for device, left in enumerate(free) if left >= 0]
    return tuple(sorted(device for _, device in sorted(there)[:count]))


@dataclass(slots=True)
class Holder:
    """A pod that has devices.

    node        : its name
    fixed       : the devices it is known to have, ascending; None = unknown
    card_memory : units of memory of its card, as its annotations say, for nodes that say nothing; 0 = they do not
    is_assumed  : it is not bound yet, as far as is known
    by_index    : its device plugin has to read their index; else it requests whole ones by name
    row, parts, devices : where it is, how much of each device, and which, as NodeDevices keeps them
    """

    uid: str
    created: float
    node: str
    row: int
    demand: GpuDemand
    fixed: tuple[int, ...] | None
    card_memory: int = 0
    is_assumed: bool = False
    by_index: bool = False
    parts: int = 0
    devices: tuple[int, ...] = ()


class NodeDevices:
    """
    cards       : what there is
    free        : (n,) thousandths left of each device, rounded down, at least 0
    free_memory : (n,) the same in units of memory; empty where devices have none that pods ask for
    conflicts   : devices of which more is held than there is, gone ones included, and whole ones that are missing
    allocated   : thousandths that are held of devices that are there, of each 1000 at most
    by_index    : pods that are handed their devices by index
    """

    __slots__ = ("_loose", "_used", "allocated", "by_index", "cards", "conflicts", "free", "free_memory", "holders")

    def __init__(self) -> None:
        self.cards = NO_CARDS
        self.holders: Final[dict[str, Holder]] = {}
        self.free: list[int] = []
        self.free_memory: list[int] = []
        self.conflicts = self.allocated = self.by_index = 0
        self._used: dict[int, int] = {}  # parts by device; what is gone may still be held
        self._loose = 0

    def set_cards(self, cards: NodeCards) -> None:
        """The node has these from now on."""
        self.cards = cards
        for holder in self.holders.values():
            holder.parts = self._parts(holder)
        self._place_all()

    def add(self, holder: Holder) -> None:
        """A pod sits here."""
        self.holders[holder.uid] = holder
        holder.parts = self._parts(holder)
        self.by_index += holder.by_index
        self._loose += holder.fixed is None
        if self._loose:
            self._place_all()
        else:
            self._take(holder, holder.fixed or ())
            self._sum_up()

    def remove(self, uid: str) -> Holder:
        """It no longer does. Raises KeyError."""
        holder = self.holders.pop(uid)
        self.by_index -= holder.by_index
        was_loose, self._loose = self._loose > 0, self._loose - (holder.fixed is None)
        if was_loose:
            self._place_all()
        else:
            for device in holder.devices:
                left = self._used[device] - holder.parts
                if left:
                    self._used[device] = left
                else:
                    del self._used[device]
            self._sum_up()
        return holder

    def fits(self, devices: Sequence[int], demand: GpuDemand) -> bool:
        """Whether a pod can have these as they are now, others still sitting there."""
        wanted, left = self.wanted(demand), self.left()
        there = all(0 <= device < len(left) and left[device] >= wanted for device in devices)
        return there and len(set(devices)) == len(devices) == demand.count

    def best_fit(self, demand: GpuDemand) -> tuple[int, ...] | None:
        return best_fit(self.left(), demand.count, self.wanted(demand), self.whole)

    @property
    def whole(self) -> int:
        """Parts of a device."""
        return WHOLE * self._scale

    def left(self) -> list[int]:
        """(n,) parts; less than 0 = more is held than there is."""
        whole, used = self.whole, self._used
        return [whole - used.get(device, 0) for device in range(self.cards.n)]

    @property
    def _scale(self) -> int:
        """Parts of a thousandth."""
        return self.cards.memory or 1

    def wanted(self, demand: GpuDemand) -> int:
        """Parts of each device; more than a device has = none is large enough."""
        if not demand.memory_units:
            return demand.milli * self._scale
        return max(demand.milli * self._scale, WHOLE * demand.memory_units) if self.cards.memory else WHOLE + 1

    def _parts(self, holder: Holder) -> int:
        wanted = self.wanted(holder.demand)
        if not self.cards.memory and wanted > WHOLE:
            wanted = holder.demand.on(holder.card_memory)
        return min(wanted, self.whole)

    def _place_all(self) -> None:
        self._used.clear()
        loose = []
        for holder in self.holders.values():
            if holder.fixed is None:
                loose.append(holder)
            else:
                self._take(holder, holder.fixed)
        if loose:
            whole, left = self.whole, self.left()
            loose.sort(key=lambda one: (one.parts < whole, one.created, one.uid))
            for holder in loose:
                count, parts = holder.demand.count, holder.parts
                devices = best_fit(left, count, parts, whole)
                if devices is None:
                    devices = least_full([max(0, one) for one in left], count)
                for device in devices:
                    left[device] -= parts
                self._take(holder, devices)
        self._sum_up()

    def _take(self, holder: Holder, devices: tuple[int, ...]) -> None:
        holder.devices = devices
        used = self._used
        for device in devices:
            used[device] = used.get(device, 0) + holder.parts

    def _sum_up(self) -> None:
        n, memory, scale = self.cards.n, self.cards.memory, self._scale
        whole = WHOLE * scale
        free, free_memory, conflicts = [WHOLE] * n, [memory] * n if memory else [], 0
        for device, used in self._used.items():
            if device < n:
                left = whole - used if used <= whole else 0
                free[device] = left // scale
                if memory:
                    free_memory[device] = left // WHOLE
                conflicts += used > whole
            else:
                conflicts += 1
        if self._loose:
            holders = self.holders.values()
            conflicts += sum(one.demand.count - len(one.devices) for one in holders if one.fixed is None)
        self.free, self.free_memory, self.conflicts = free, free_memory, conflicts
        self.allocated = WHOLE * n - sum(free)
