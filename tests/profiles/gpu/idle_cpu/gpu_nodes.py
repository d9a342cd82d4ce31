"""Nodes with cards, pods that use them, and offline pods beside them, as a scheduler process puts it together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_demand import gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from profiles.gpu.gpu_settings import IdleCpuOptions
from profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from profiles.gpu.idle_cpu.idle_cpu import IdleCpu, gap_of
from profiles.gpu.idle_cpu.offline_pods import OFFLINE_ANNOTATION, OfflinePods
from profiles.online.colocation_loop import Colocation
from profiles.online.colocation_settings import GapOptions
from testing.constants import with_constants
from testing.placement.views import verdicts
from tests.scorer.live_cluster import loaded, node, pod_of
from tests.scorer.scorer_at import LiveScorer

GPU = "nvidia.com/gpu"
PROFILE = "gpu-scheduler"
USE = "forecast-scheduler.io/virtual-request"


def gpu_node(name: str, *, cores: float = 40.0, gpus: int = 4, model: str = "A100") -> NodeInfo:
    """With more memory than anybody uses: what matters is CPU."""
    amounts = {"cpu": cores, "memory": 2.0**40, "pods": 110.0} | ({GPU: float(gpus)} if gpus else {})
    labels = {"nvidia.com/gpu.product": model} if gpus else {}
    return replace(node(name, cores), labels=labels, capacity=amounts, allocatable=amounts)


def gpu_pod(name: str, on: str = "", *, gpus: int = 1, cpu: float = 4.0, **more: Any) -> PodInfo:
    made = pod_of(None, name, on, cpu=cpu, memory=0.0)
    return replace(made, requests={"cpu": cpu, GPU: float(gpus)}, scheduler_name=PROFILE, priority=100, **more)


def plain_pod(name: str, on: str = "", *, cpu: float = 1.0, **more: Any) -> PodInfo:
    """Without GPUs, and not offline."""
    return replace(pod_of(None, name, on, cpu=cpu, memory=0.0), scheduler_name=PROFILE, **more)


def offline_pod(
    name: str = "offline", on: str = "", *, cpu: float = 1.0, uses: float | None = None, **more: Any
) -> PodInfo:
    """Of a Job. uses: cores, as it declares."""
    said: Mapping[str, str] = {OFFLINE_ANNOTATION: "true"} | ({} if uses is None else {USE: f'{{"cpu": {uses}}}'})
    made = {"annotations": said, "owner": Owner("Job", "images"), "owner_uid": "job"} | more
    return plain_pod(name, on, cpu=cpu, **made)


class GpuNodes:
    """node-0 with 40 cores and 4 cards unless told otherwise; at some hour of the model's first day."""

    def __init__(self, *pods: PodInfo, nodes: tuple[NodeInfo, ...] = (), hour: float = 4.0, **options: Any) -> None:
        gap = GapOptions(**{name: options.pop(name) for name in list(options) if name in GapOptions.model_fields})
        self.options = with_constants(IdleCpuOptions(), **options)
        self.live = LiveScorer(hour, without_model=True, sizes=())
        scorer = self.live.scorer
        self.cluster = scorer.tables._cluster
        self.devices = DeviceTable(self.cluster.state)
        self.offline = OfflinePods(self.asks_for_gpus, PROFILE, gap.priority_below)
        self.pods = GpuNodePods(self.cluster, self.offline)
        self.index = PlacementIndex(self.cluster.state)
        for follower in (self.devices, self.pods, self.index):
            scorer.tables.attach((), follower)
        self.colocation = Colocation(scorer.tables, gap, clock=self.live.clock)
        self.filter = IdleCpu(self.options, self.offline, self.pods, self.devices, self.colocation.gap(gap_of(gap)))
        scorer.tables.replace(Kind.NODES, list(nodes) or [gpu_node("node-0")])
        for pod in pods:
            self.live.put(pod)

    def asks_for_gpus(self, pod: PodInfo) -> bool:
        return gpu_demand(pod, self.devices.options) is not None

    def with_model(self) -> GpuNodes:
        self.live.scorer.tables.install(loaded())
        self.live.scorer.tables.tick()
        self.colocation.keep_up()
        return self

    @property
    def view(self) -> ClusterView:
        return ClusterView(self.cluster, self.index, further=(self.devices,))

    def reasons(self, pod: PodInfo) -> dict[str, frozenset[str]]:
        found = verdicts(self.filter, pod, self.view)
        assert not any(verdict.preemptible and verdict.reasons for verdict in found.values())
        return {name: verdict.reasons for name, verdict in found.items()}

    def passing(self, pod: PodInfo) -> set[str]:
        return {name for name, why in self.reasons(pod).items() if not why}
