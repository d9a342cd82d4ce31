"""Preemption among pods with devices, put together as the program does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_table import DeviceTable
from placement.devices.gpu_devices import GpuDevices
from placement.filters.filter import Filter
from placement.node_rule_settings import DeviceOptions
from placement.pod_importance import Standing, priority_of
from scheduler.loop_settings import PreemptionOptions
from scheduler.preemption.nominated_devices import NominatedDevices
from testing.constants import with_constants
from testing.placement.views import node_named
from tests.scheduler.preemption.made_up import World, pod

GPU = "nvidia.com/gpu"
MILLI, INDEX = "forecast-scheduler.io/gpu-milli", "forecast-scheduler.io/gpu-index"
UNPROTECTED = with_constants(PreemptionOptions(), protect_started=0.0)


def gpu_node(name: str, gpus: int = 2, *, cpu: float = 32.0) -> NodeInfo:
    return node_named(name, allocatable={"cpu": cpu, "memory": 2.0**40, "pods": 110.0, GPU: float(gpus)})


def whole(name: str, on: str = "", *devices: int, gpus: int = 0, cpu: float = 1.0, **more: Any) -> PodInfo:
    """With whole GPUs. devices: that it says it has; none = it does not say."""
    made = pod(name, on, cpu=cpu, **more)
    said = {INDEX: ",".join(map(str, devices))} if devices else {}
    return replace(made, requests={**made.requests, GPU: float(gpus or len(devices) or 1)}, annotations=said)


def share(name: str, milli: int, on: str = "", device: int | None = None, *, cpu: float = 1.0, **more: Any) -> PodInfo:
    """With so many thousandths of one."""
    said = {MILLI: str(milli)} | ({} if device is None else {INDEX: str(device)})
    return replace(pod(name, on, cpu=cpu, **more), annotations=said)


class GpuWorld(World):
    """Its tables have devices, too."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        pods: Sequence[PodInfo],
        *,
        options: PreemptionOptions | None = UNPROTECTED,
        standing_of: Standing = priority_of,
        devices: DeviceOptions | None = None,
        further: Sequence[Filter] = (),
    ) -> None:
        super().__init__(nodes, pods, options=options, standing_of=standing_of)
        self.table = DeviceTable(self.view.state, devices, is_assumed=lambda uid: uid in self.assumed.uids())
        self.view = replace(self.view, further=(self.table,))
        self.view.cluster.listeners.append(self.table.apply)
        self.keeps = NominatedDevices(self.table, self.nominated)
        self.filters = (*self.filters, GpuDevices(self.table), self.keeps, *further)

    def devices(self) -> dict[str, tuple[int, ...]]:
        """By name of the pods that sit."""
        return {uid: self.table.devices_of(uid) for uid in sorted(self.view.state.seat_of)}

    def free(self) -> list[list[int]]:
        return list(self.table.free_milli.tolist())
