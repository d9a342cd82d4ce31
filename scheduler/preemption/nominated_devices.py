"""Filter NominatedDevices: devices are kept for pods for which room is being made, until they come to sit there.

NominatedPods keeps what they request by name; a share of a device has no name, and a whole device is not free while
others have shares of it. Without this a pod that is made anew would take the very share that its predecessor gave up,
while the pod that needs it waits out its backoff.

    after    what is left once those on their way out are gone
    pod      may have any device on which there is room now: with each of them the nominated pods must fit `after`
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.devices.device_demand import GpuDemand, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.devices.node_devices import NodeDevices, best_fit
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from scheduler.preemption.nominated import NominatedPods

_KEPT: Final = "node(s) keep devices for nominated pods of equal or higher priority"


class NominatedDevices(PlainFilter):
    """Called under the lock of the tables."""

    name = "NominatedDevices"
    woken_by = NominatedPods.woken_by

    def __init__(self, devices: DeviceTable, nominated: NominatedPods) -> None:
        self._devices, self._nominated = devices, nominated

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether no device is kept from the pod anywhere, whatever comes to sit where."""
        return gpu_demand(pod, self._devices.options) is None or not any(
            self._kept(row, pod) for row in self._nominated.rows()
        )

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Only nodes with nominated pods are looked at."""
        demand = gpu_demand(pod, self._devices.options)
        if demand is None or not len(self._nominated):
            return ()
        kept = np.zeros(view.n_rows, dtype=bool)
        for row in self._nominated.rows():
            node, others = self._devices.node(row), self._kept(row, pod)
            if node is not None and others:
                kept[row] = _is_in_the_way(demand, others, node, self._going(row, node, view.state))
        return found(kept, view, _KEPT, preemptible=True)

    def _kept(self, row: int, pod: PodInfo) -> list[GpuDemand]:
        """What nominated pods want there that are as important, the most important first."""
        there = sorted(self._nominated.kept_from(pod, row), key=lambda one: (-one.pod.priority, one.pod.uid))
        demands = (gpu_demand(one.pod, self._devices.options) for one in there)
        return [demand for demand in demands if demand is not None]

    def _going(self, row: int, node: NodeDevices, state: ClusterState) -> Collection[str]:
        """UIDs of pods with devices on the node that are on their way out."""
        victims = frozenset[str]().union(*(one.victims for one in self._nominated.on(row)))
        return [uid for uid in node.holders if uid in victims or state.pods[uid].terminating]


def _is_in_the_way(demand: GpuDemand, others: Sequence[GpuDemand], node: NodeDevices, going: Collection[str]) -> bool:
    """Return whether others might not fit there with the pod once those that go are gone."""
    left, wanted = node.left(), node.wanted(demand)
    after = list(left)
    for uid in going:
        for device in node.holders[uid].devices:
            if device < len(after):
                after[device] += node.holders[uid].parts
    # Who does not fit now is rejected by GpuDevices, too; preemption has to know that more has to go then.
    for parts in (left, after):
        fitting = [device for device, there in enumerate(parts) if there >= wanted]
        if len(fitting) >= demand.count:
            break
    else:
        return True
    sets = [[device] for device in fitting] if demand.count == 1 else [fitting[: demand.count]]
    for devices in sets:
        beside = list(after)
        for device in devices:
            beside[device] -= wanted
        if not _all_fit(others, beside, node):
            return True
    return False


def _all_fit(demands: Sequence[GpuDemand], left: Sequence[int], node: NodeDevices) -> bool:
    """One after the other. left: (n_devices,) parts."""
    rest = list(left)
    for demand in demands:
        wanted = node.wanted(demand)
        devices = best_fit(rest, demand.count, wanted, node.whole)
        if devices is None:
            return False
        for device in devices:
            rest[device] -= wanted
    return True
