"""The devices of all nodes and who has which of them, in columns; follows the cluster.

    Node      --node_cards.py-->  how many, which model
    pods      --demand.py------>  what they ask for
              --annotations.py->  which devices they have, as their scheduler wrote it
    assumed pods  --choose----->  which devices they get; remembered until they are seen bound and say so themselves,
                                  or are taken back

What the table holds is a function of the objects and of the choices that are remembered: `rebuild` gives the same one.
Everything is called under the lock of the tables, but `annotations_of`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, Seat, one_by_one
from cluster.tables.columns import request_units
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.devices.assumed_devices import Choices, DeviceChoice
from placement.devices.declared_devices import (
    card_memory,
    cards_of,
    index_annotation,
    indices_of,
    model_of,
    sharing_annotations,
)
from placement.devices.device_columns import DeviceColumns
from placement.devices.device_demand import WHOLE, GpuDemand, asks_by_name, gpu_demand
from placement.devices.node_devices import Holder, NodeDevices
from placement.node_rule_settings import DeviceOptions

logger = logging.getLogger(__name__)

Choose = Callable[[int, GpuDemand, PodInfo], tuple[int, ...] | None]
"""Which devices of the node of a row a pod gets, of what `free_milli` says is left; None = no answer. The demand has
the thousandths that hold on that node."""

Offered = Callable[[str], tuple[int, int]]
"""Whole cards that slices offer on a node by name, and how many of them are free."""


class DeviceTable(DeviceColumns, NodesAndPodsOnly):
    """Implements Follower. All that is public is to be read only, but the lists.

    choosers : of the devices of pods that are assumed, the first that has an answer; best fit where none has
    offers   : what slices offer; counts where a node has no devices of its own, for `n_cards` and `cards_on` alone
    """

    def __init__(
        self,
        state: ClusterState,
        options: DeviceOptions | None = None,
        *,
        is_assumed: Callable[[str], bool] = lambda uid: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Starts from what the state holds now.

        is_assumed : whether the pod of this UID is only assumed to sit where the state has it
        clock      : unix seconds, for the annotations that the sharing plugin reads
        """
        super().__init__(state)
        self.options: Final = options or DeviceOptions()
        self.choosers: list[Choose] = []
        self.offers: list[Offered] = []
        self._is_assumed, self._clock = is_assumed, clock
        self._nodes: dict[int, NodeDevices] = {}  # by row, those with devices or pods that have some
        self._row_of: dict[str, int] = {}  # by UID of a pod that has devices
        self._choices = Choices(is_assumed)
        self.rebuild()

    # What is read, in addition to the columns

    @property
    def has_any(self) -> bool:
        """Whether some node has devices, or some pod."""
        return bool(self._nodes)

    def devices_of(self, uid: str) -> tuple[int, ...]:
        """Indices of the devices that a pod has, ascending; none = it has none, as far as is known."""
        row = self._row_of.get(uid)
        return () if row is None else self._nodes[row].holders[uid].devices

    def node(self, row: int) -> NodeDevices | None:
        """The devices of the node of a row and who has them, to be read; None = there are none."""
        return self._nodes.get(row)

    def annotations_of(self, pod: PodInfo, node: str) -> Mapping[str, str]:
        """What a pod is to say of its devices once it is bound there; nothing = it has none. From any thread."""
        choice = self._choices.get(pod.uid)
        if choice is None or choice.node != node or not choice.devices:
            return {}
        said = index_annotation(choice.devices)
        kind = self.options.shared_memory_resource
        memory = request_units(kind, pod.requests.get(kind, 0.0))
        if memory > 0:
            said |= sharing_annotations(choice.devices[0], memory, choice.memory, self._clock())
        return said

    # Figures, without the lock: each is right by itself

    def devices_by_model(self) -> dict[str, tuple[int, int]]:
        """Return devices, and thousandths of them that are held, by model; '' = unknown model."""
        sums: dict[str, tuple[int, int]] = {}
        for node in list(self._nodes.values()):
            n, allocated = sums.get(node.cards.model, (0, 0))
            sums[node.cards.model] = (n + node.cards.n, allocated + node.allocated)
        return {model: both for model, both in sums.items() if both[0]}

    def conflicts(self) -> int:
        """Devices of which more is held than there is, of nodes that are there."""
        alive = self._state.nodes
        # Devices that slices offer are in no list of ours: who has which the allocator knows.
        return sum(
            node.conflicts
            for row, node in list(self._nodes.items())
            if alive[row] is not None and not self._has_offer(row)
        )

    def offer_changed(self, row: int) -> None:
        """Slices offer others on the node of a row. Under the lock."""
        self.version += 1
        self._offer(row)

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        self.version += 1
        for change in one_by_one(changes):
            match change:
                case PodChange(pod, before, after):
                    self._pod_changed(pod, before, after)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._node_changed(row)
                case _:
                    pass

    def rebuild(self) -> None:
        """From the tables as they are, and the choices that are remembered."""
        state = self._state
        self.version += 1
        self._nodes.clear()
        self._row_of.clear()
        self._clear()
        self._choices.keep_only(state.seat_of.__contains__)
        for row in range(self._ensured()):
            self._node_changed(row)
        # Pods without a choice come last, the oldest first.
        seated = [(self._is_to_choose(uid), state.pods[uid].created, uid) for uid in state.seat_of]
        for _, _, uid in sorted(seated):
            self._pod_changed(state.pods[uid], None, state.seat_of[uid])

    # Nodes

    def _node_changed(self, row: int) -> None:
        # Changes come in batches; the row may have been freed, or taken again, by a later one of the same batch.
        self._ensured(row + 1)
        nodes = self._state.nodes
        cards = cards_of(nodes[row] if row < len(nodes) else None, self.options)
        node = self._nodes.get(row)
        self._offer(row)
        if node is None:
            if not cards.n:
                return
            node = self._nodes[row] = NodeDevices()
        self._touch(row)  # its CPU and memory may be others
        if cards != node.cards:
            node.set_cards(cards)
            self._write_cards(row, cards)
            self._write_held(row, node)
            self._drop_if_empty(row, node)

    def _offer(self, row: int) -> None:
        if not self.offers:
            return
        nodes = self._state.nodes
        node = nodes[row] if row < len(nodes) else None
        n, free = (0, 0) if node is None or cards_of(node, self.options).n else self.offers[0](node.name)
        self._write_offered(row, n, free, "" if node is None else model_of(node, self.options))
        if n:
            self._touch(row)  # its CPU and memory may be others

    def _drop_if_empty(self, row: int, node: NodeDevices) -> None:
        if not node.holders and not node.cards.n:
            del self._nodes[row]

    # Pods

    def _pod_changed(self, pod: PodInfo, before: Seat | None, after: Seat | None) -> None:
        uid = pod.uid
        held_on = self._row_of.get(uid)
        for seat in (before, after):
            if seat is not None and (seat.node in self._nodes or self._has_offer(seat.node)):
                self._touch(seat.node)
        demand = None if after is None else gpu_demand(pod, self.options)
        if held_on is not None:
            holder = self._nodes[held_on].holders[uid]
            if after is not None and self._is_the_same(holder, pod, demand, after):
                return
            self._leave(held_on, uid)
        if after is None or demand is None:
            self._choices.left(uid, was_assumed=True)
            return
        self._take(pod, demand, after.node)

    def _is_the_same(self, holder: Holder, pod: PodInfo, demand: GpuDemand | None, seat: Seat) -> bool:
        """Whether nothing has changed for a pod that has devices, but maybe that it is known to be bound now."""
        is_elsewhere = holder.row != seat.node or holder.node != pod.node
        if is_elsewhere or holder.demand != demand or holder.created != pod.created:
            return False
        is_assumed = self._is_assumed(pod.uid)
        if not is_assumed:
            said = indices_of(pod, demand)
            if said is not None:
                if said != holder.fixed or holder.card_memory != card_memory(pod):
                    return False
                self._choices.forget(pod.uid)
            elif holder.fixed is not None and pod.uid not in self._choices:
                return False  # it does not say any more what it has said
        elif not holder.is_assumed:
            return False
        holder.is_assumed = is_assumed
        return True

    def _leave(self, row: int, uid: str) -> None:
        node = self._nodes[row]
        holder = node.remove(uid)
        del self._row_of[uid]
        self._choices.left(uid, was_assumed=holder.is_assumed)
        self._write_held(row, node)
        self._touch(row)
        self._drop_if_empty(row, node)

    def _take(self, pod: PodInfo, demand: GpuDemand, row: int) -> None:
        self._ensured(row + 1)
        node = self._nodes.get(row)
        if node is None:
            node = self._nodes[row] = NodeDevices()
        is_assumed = self._is_assumed(pod.uid)
        fixed = self._chosen(pod, demand, row, node) if is_assumed else self._known(pod, demand)
        by_index = not asks_by_name(pod, self.options)
        holder = Holder(pod.uid, pod.created, pod.node, row, demand, fixed, card_memory(pod), is_assumed, by_index)
        node.add(holder)
        self._row_of[pod.uid] = row
        self._write_held(row, node)
        self._touch(row)

    def _known(self, pod: PodInfo, demand: GpuDemand) -> tuple[int, ...] | None:
        """The devices of a pod that is bound: as it says, or else as they were chosen for it."""
        if (said := indices_of(pod, demand)) is not None:
            self._choices.forget(pod.uid)
            return said
        choice = self._choices.of_bound(pod.uid, pod.node)
        return None if choice is None else choice.devices or None

    def _chosen(self, pod: PodInfo, demand: GpuDemand, row: int, node: NodeDevices) -> tuple[int, ...] | None:
        """The devices of a pod that is assumed: what it says itself is of before, or made up."""
        choice = self._choices.get(pod.uid)
        if choice is None or choice.node != pod.node or len(choice.devices) not in (0, demand.count):
            choice = DeviceChoice(pod.node, self._choice_of(row, node, demand, pod), node.cards.memory)
            self._choices.make(pod.uid, choice)
        return choice.devices or None

    def _choice_of(self, row: int, node: NodeDevices, demand: GpuDemand, pod: PodInfo) -> tuple[int, ...]:
        wanted = demand
        if demand.memory_units:
            wanted = GpuDemand(demand.count, min(WHOLE, demand.on(node.cards.memory)))
        answers = (choose(row, wanted, pod) for choose in self.choosers)
        devices = next((found for found in answers if found is not None), None)
        if devices is not None and not node.fits(devices, demand):
            # By thousandths memory may look as if it fitted where it lacks a unit; anything else is a mistake.
            fields = {"pod": f"{pod.namespace}/{pod.name}", "node": pod.node, "devices": list(devices)}
            if not demand.memory_units:
                logger.error("devices were chosen that are not free: best fit instead", extra=fields)
            devices = None
        if devices is None:
            devices = node.best_fit(demand)
        return () if devices is None else tuple(sorted(devices))

    def _is_to_choose(self, uid: str) -> bool:
        return self._is_assumed(uid) and uid not in self._choices
