"""How many whole cards nodes offer by slices, to pods that request an extended resource of a DeviceClass.

Counted are devices of one node that the class selects. Devices that several nodes can use are in no count, nor those
that are given away in shares. Which device a pod gets is left to the allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from profiles.gpu.dra.allocator import AllocationFailed, NodeUnusable, Supply, takeable
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.device_pools import PoolOnNode
from profiles.gpu.dra.dra_objects import (
    ClaimKey,
    ClaimSpec,
    Device,
    DeviceAlternative,
    DeviceId,
    DeviceRequest,
    DeviceToleration,
    ResourceClaimInfo,
)
from profiles.gpu.dra.extended_resources import is_in_memory
from profiles.gpu.dra.unsupported import refusal_of

_ANY_TAINT: Final = (DeviceToleration(key="", operator="Exists", value="", effect=""),)


@dataclass(frozen=True, slots=True)
class SliceCards:
    """
    n    : cards of the node
    free : cards that neither a claim nor a taint keeps from the next pod
    held : cards that pods have by an extended resource
    """

    n: int = 0
    free: int = 0
    held: int = 0

    @property
    def for_names(self) -> int:
        """Cards that pods have by an extended resource or can get by it."""
        return self.free + self.held


NO_SLICE_CARDS: Final = SliceCards()


class SliceCardTable:
    """By name of the node; follows the table of devices, under the lock of the tables.

    on_change : notified of the name of a node whose cards are others now
    """

    def __init__(self, table: DraTable, resources: Sequence[str], matches: Callable[[str, Device], bool]) -> None:
        """
        resources : extended resources of which one is a card; of several the one with the most cards counts
        matches   : whether an expression selects a device; raises SelectorError
        """
        self.on_change: list[Callable[[str], None]] = []
        self._table, self._resources, self._matches = table, resources, matches
        self._of: dict[str, SliceCards] = {}
        table.on_devices.append(self._count)

    def of(self, node: str) -> SliceCards:
        """The cards of a node."""
        return self._of.get(node, NO_SLICE_CARDS)

    def offered(self, node: str) -> tuple[int, int]:
        """Cards, and those that are free, as the table of devices takes them."""
        cards = self.of(node)
        return cards.n, cards.free

    def _count(self, nodes: Collection[str] | None) -> None:
        """nodes: names; None = all."""
        names = self._table.class_resources
        classes = sorted({names[one] for one in self._resources if one in names})
        if not classes and not self._of:
            return
        for node in sorted(self._of.keys() | self._table.inventory.own_pools.keys() if nodes is None else nodes):
            counts = [self._of_class(node, one) for one in classes]
            now = max(counts, key=lambda one: one.n, default=NO_SLICE_CARDS)
            if now == self.of(node):
                continue
            self._of[node] = now
            if not now.n:
                del self._of[node]
            for listener in self.on_change:
                listener(node)

    def _of_class(self, node: str, device_class: str) -> SliceCards:
        pools = self._table.inventory.of_node(node, lambda where: where.node == node)
        used, shares = self._table.used, self._table.shares
        there = self._takeable(pools, device_class, Supply(self._table.class_of, (), self._matches), _ANY_TAINT)
        if not there:
            return NO_SLICE_CARDS
        free = self._takeable(pools, device_class, Supply(self._table.class_of, used.keys(), self._matches, shares))
        held = sum(any(map(self._is_by_name, used.get(one, ()))) for one in there)
        return SliceCards(len(there), min(len(free), len(there) - held), held)

    def _is_by_name(self, key: ClaimKey) -> bool:
        """Whether a scheduler made the claim for extended resources, or is about to."""
        claim = self._table.claim(*key)
        return is_in_memory(key) if claim is None else bool(claim.extended_for)

    def _takeable(
        self,
        pools: Sequence[PoolOnNode],
        device_class: str,
        supply: Supply,
        tolerations: tuple[DeviceToleration, ...] = (),
    ) -> Sequence[DeviceId]:
        wish = DeviceAlternative(name="card", device_class=device_class, tolerations=tolerations)
        claim = ResourceClaimInfo("", "cards", "", ClaimSpec((DeviceRequest("card", (wish,)),)))
        if not pools or refusal_of(claim, supply.classes):
            return ()
        try:
            return takeable(claim, pools, supply)
        except (AllocationFailed, NodeUnusable):
            return ()  # nor can a pod have any there
