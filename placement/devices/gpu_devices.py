"""Filter GpuDevices: there is a device, or there are devices, with enough left for what the pod asks for; and which
pods are the least to lose so that devices become free.

NodeResourcesFit counts whole devices by name as well; here devices that are shared count, too. How many pods of a
kind still fit is exact whichever devices they get: shares of one size fill each device by itself.

Device by device, the cheapest first: of the pods that have some of it all stay that can, the most important first.
Pods that go for one device make room on their others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.devices.declared_devices import cards_of
from placement.devices.device_demand import WHOLE, GpuDemand, asks_by_name, demand_mistake, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.devices.node_devices import NodeDevices
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import every_node, found
from placement.pod_importance import Cost, Standing, cost_of

_BOUNDLESS: Final = np.iinfo(np.int64).max
_NO_DEVICES: Final = "node(s) had no devices"
_TOO_FEW: Final = "node(s) had too few devices"
_TOO_SMALL: Final = "node(s) had no device that is large enough"
_TAKEN: Final = "node(s) had too few free devices"
_NO_SHARE: Final = "node(s) had no device with enough free thousandths"
_SHARED_NODE: Final = "node(s) had shared devices, and the pod requests whole ones"
_WHOLE_NODE: Final = "node(s) had devices handed out whole, and the pod asks for a share"


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """milli: thousandths that the pod has of each of its devices."""

    pod: PodInfo
    devices: tuple[int, ...]
    milli: int


def least_in_the_way(
    held: Sequence[DeviceHolder], free: Sequence[int], count: int, milli: int, standing: Standing, whole: int = WHOLE
) -> tuple[PodInfo, ...] | None:
    """Who has to go so that `count` devices have `milli` thousandths free; None = all of them are not enough.

    held     : by pods that may go, the most important first
    free     : (n_devices,) thousandths as long as they are there; less than 0 = more is held than there is
    standing : what counts as a pod's priority, see pod_importance.py
    whole    : all of a device, where all is given in smaller parts than thousandths
    """
    on: list[list[DeviceHolder]] = [[] for _ in free]
    emptied = list(free)  # without any of them
    for one in held:
        for device in one.devices:
            if device < len(free):
                on[device].append(one)
                emptied[device] = min(whole, emptied[device] + one.milli)
    possible = [device for device, left in enumerate(emptied) if left >= milli]
    if len(possible) < count:
        return None
    gone: dict[str, PodInfo] = {}
    for _ in range(count):
        victims = {device: _victims(on[device], emptied[device] - milli, gone) for device in possible}
        cheapest = min(possible, key=lambda device: _cost(device, victims[device], standing))
        possible.remove(cheapest)
        gone.update((pod.uid, pod) for pod in victims[cheapest])
    return tuple(one.pod for one in held if one.pod.uid in gone)


def _victims(held: Sequence[DeviceHolder], spare: int, gone: Mapping[str, PodInfo]) -> list[PodInfo]:
    """Return the pods that go in addition to those that are gone, so that at most `spare` thousandths of a device are
    held.
    """
    victims = []
    for one in held:
        if one.pod.uid in gone:
            continue
        if one.milli <= spare:
            spare -= one.milli
        else:
            victims.append(one.pod)
    return victims


def _cost(device: int, victims: Sequence[PodInfo], standing: Standing) -> tuple[bool, Cost | int]:
    """As preemption compares nodes."""
    return (True, cost_of(device, victims, 0, standing)) if victims else (False, device)


class GpuDevices(PlainFilter):
    """Devices are counted one by one: a share of one has no name that requests could be added up by."""

    name = "GpuDevices"
    knows_victims = True
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.POD_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
        }
    )

    def __init__(self, devices: DeviceTable, class_resources: Container[str] = frozenset()) -> None:
        """
        devices         : attached to the same tables, and in `further` of the view that preemption tries out things in
        class_resources : extended resources that a DeviceClass offers on nodes without devices of their own; may change
        """
        self._devices, self._options, self._class_resources = devices, devices.options, class_resources

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evicting pods helps where the devices are there, and others have them."""
        if mistake := demand_mistake(pod, self._options):
            return every_node(view, mistake)
        demand = gpu_demand(pod, self._options)
        return () if demand is None else list(self._rejections(pod, demand, view))

    def _rejections(self, pod: PodInfo, demand: GpuDemand, view: ClusterView) -> Iterator[Rejection]:
        table = self._devices
        n_devices = table.n_devices
        none = n_devices == 0
        if not self._is_of_class(pod):
            yield from found(none, view, _NO_DEVICES, preemptible=False)
        unfit = none
        if demand.count > 1:
            unfit = n_devices < demand.count
            yield from found(unfit & ~none, view, _TOO_FEW, preemptible=False)
        elif demand.memory_units:
            unfit = table.device_memory < demand.memory_units
            yield from found(unfit & ~none, view, _TOO_SMALL, preemptible=False)
        full = self._is_full(demand) & ~unfit
        if full.any():
            reason = _TAKEN if demand.is_whole else _NO_SHARE
            plain = self._counted_by_name(pod)
            if plain is None:
                yield from found(full, view, reason, preemptible=True)
            else:
                yield from found(full & plain, view, reason, preemptible=True, by_requests=True)
                yield from found(full & ~plain, view, reason, preemptible=True)
        if not self._options.mixed:
            by_name = asks_by_name(pod, self._options)
            others = table.pods_by_index if by_name else table.pods_by_name
            reason = _SHARED_NODE if by_name else _WHOLE_NODE
            yield from found((others > 0) & ~unfit & ~full, view, reason, preemptible=True)

    def _is_full(self, demand: GpuDemand) -> Bools:
        """(n_rows,)"""
        if demand.is_whole:
            return np.asarray(self._devices.free_whole < demand.count)
        full = self._devices.most_free < demand.milli
        if demand.memory_units:  # of the same device the most memory is left
            full |= self._devices.most_free_memory < demand.memory_units
        return np.asarray(full)

    def _counted_by_name(self, pod: PodInfo) -> Bools | None:
        """(n_rows,) nodes where this comes to the same as NodeResourcesFit: the pod and all others there that have
        devices request whole ones by the one name there is. None = there are no such nodes."""
        is_plain = len(self._options.resources) == 1 and asks_by_name(pod, self._options)
        return np.asarray(self._devices.pods_by_index == 0) if is_plain else None

    def _is_of_class(self, pod: PodInfo) -> bool:
        """Whether DynamicResources gives the pod its devices where no device plugin offers them."""
        return any(kind in pod.requests and kind in self._class_resources for kind in self._options.resources)

    # Preemption

    def least_victims(
        self, pod: PodInfo, row: int, pods: Sequence[PodInfo], standing: Callable[[PodInfo], int]
    ) -> Sequence[PodInfo] | None:
        demand, node = gpu_demand(pod, self._options), self._devices.node(row)
        if demand is None:
            return ()
        if node is None or node.cards.n < demand.count or (wanted := node.wanted(demand)) > node.whole:
            return None
        others = self._of_the_other_kind(pod, node)
        if not others <= {one.uid for one in pods}:
            return None
        held, free = [], node.left()
        for one in pods:
            holder = node.holders.get(one.uid)
            if holder is None:
                continue
            if one.uid not in others:
                held.append(DeviceHolder(one, holder.devices, holder.parts))
                continue
            for device in holder.devices:
                if device < len(free):
                    free[device] = min(node.whole, free[device] + holder.parts)
        found = least_in_the_way(held, free, demand.count, wanted, standing, node.whole)
        gone = others.union(one.uid for one in found or ())
        return None if found is None else [one for one in pods if one.uid in gone]

    def _of_the_other_kind(self, pod: PodInfo, node: NodeDevices) -> set[str]:
        """Return UIDs of the pods on a node next to which it may have no devices."""
        if self._options.mixed:
            return set()
        by_index = not asks_by_name(pod, self._options)
        return {uid for uid, holder in node.holders.items() if holder.by_index != by_index}

    # Like pods

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) pods like it until no device has enough left; no end to it for pods without devices."""
        demand = gpu_demand(pod, self._options)
        if demand is None:
            return np.full(len(rows), _BOUNDLESS, dtype=np.int64)
        if demand.is_whole and not demand.memory_units:
            pods = np.asarray(self._devices.free_whole[rows] // demand.count)
            is_elsewhere = (self._devices.n_devices[rows] == 0) & self._is_of_class(pod)
            return np.where(is_elsewhere, _BOUNDLESS, pods)
        pods = np.maximum(self._devices.free_milli[rows], 0) // demand.milli  # (n_nodes, most_devices)
        if demand.memory_units:
            np.minimum(pods, self._devices.free_memory[rows] // demand.memory_units, out=pods)
        return np.asarray(pods.sum(axis=1))

    # The queue

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Return QUEUE if devices may have come, or a pod that held some has gone; only the pod itself can mend a
        mistake.
        """
        match event.kind:
            case EventKind.UNSCHEDULED_POD_CHANGED:
                helps = event.pod is None or event.pod.uid == pod.uid
            case _ if demand_mistake(pod, self._options):
                helps = False
            case EventKind.POD_LEFT | EventKind.POD_CHANGED:
                helps = event.pod is None or gpu_demand(event.pod, self._options) is not None
            case _:
                helps = self._has_devices_for(pod, event)
        return Hint.QUEUE if helps else Hint.SKIP

    def _has_devices_for(self, pod: PodInfo, event: ClusterEvent) -> bool:
        demand = gpu_demand(pod, self._options)
        if event.node is None or demand is None:
            return True
        cards = cards_of(event.node, self._options)
        if cards.n < demand.count:
            return False
        return event.before is None or cards != cards_of(event.before, self._options)
