"""A cluster with cards whose device table follows it, pods in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.node_rule_settings import DeviceOptions
from scorer.options import ScorerOptions
from tests.placement.small_cluster import node_of, pod_of

GPU, MEMORY, COUNT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
MILLI, INDEX = "forecast-scheduler.io/gpu-milli", "forecast-scheduler.io/gpu-index"
IDX = "ALIYUN_COM_GPU_MEM_IDX"


def card_node(name: str, n: int = 0, *, shared: int = 0, memory: int = 0, model: str = "") -> NodeInfo:
    """n: whole devices; shared, memory: devices of the sharing plugin, and of each its units."""
    amounts = {"cpu": 64.0, "memory": 2.0**38, "pods": 110.0}
    amounts |= {GPU: float(n)} if n else {}
    amounts |= {COUNT: float(shared), MEMORY: float(shared * memory)} if shared else {}
    labels = {"nvidia.com/gpu.product": model} if model else {}
    return replace(node_of(name, labels), capacity=amounts, allocatable=amounts)


def card_pod(
    name: str,
    node: str = "",
    *,
    n: int = 0,
    milli: int | str | None = None,
    memory: int = 0,
    said: Mapping[str, str] | None = None,
    created: float = 0.0,
    phase: PodPhase | None = None,
) -> PodInfo:
    """n: whole devices; milli: its annotation; memory: units it requests; said: further annotations."""
    requests = {GPU: float(n)} if n else {}
    requests |= {MEMORY: float(memory)} if memory else {}
    annotations = ({} if milli is None else {MILLI: str(milli)}) | dict(said or {})
    pod = replace(pod_of(name, node=node), requests=requests, annotations=annotations, created=created)
    return pod if phase is None else replace(pod, phase=phase)


class DeviceWorld:
    """The tables, under nobody's lock."""

    def __init__(
        self, nodes: Iterable[NodeInfo] = (), pods: Iterable[PodInfo] = (), options: DeviceOptions | None = None
    ) -> None:
        self.cluster = AssumingCluster(ScorerOptions(), now=0.0)
        self.put(*nodes, *pods)
        self.state = self.cluster.state
        self.index = PlacementIndex(self.state)
        self.options = options or DeviceOptions()
        self.table = self.new_table()
        self.view = ClusterView(self.cluster, self.index, (self.table,))
        self.cluster.listeners += [self.index.apply, self.table.apply]

    def new_table(self) -> DeviceTable:
        """One that starts from what is there."""
        is_assumed = self.cluster.assumed.__contains__
        return DeviceTable(self.state, self.options, is_assumed=is_assumed, clock=lambda: 1795370000.0)

    def put(self, *items: NodeInfo | PodInfo) -> None:
        """The watch says so."""
        for item in items:
            self.cluster.put(item)

    def delete(self, name: str) -> None:
        """The watch says that a pod is gone."""
        self.cluster.delete_pod(f"default/{name}")

    def assume(self, pod: PodInfo, node: str) -> tuple[int, ...]:
        """Place a pod; its devices."""
        self.put(pod)
        self.cluster.assume(pod, node, until=1e9)
        return self.devices(pod.name)

    def forget(self, name: str) -> None:
        """Take it back."""
        self.cluster.forget(f"default/{name}")

    def bound(self, name: str) -> PodInfo:
        """An assumed pod as the watch will have it once it is bound, with what the Binding says."""
        pod = self.state.pods[f"default/{name}"]
        said = {**pod.annotations, **self.table.annotations_of(pod, pod.node)}
        return replace(pod, annotations=said, phase=PodPhase.RUNNING)

    def bind(self, name: str) -> None:
        """It is bound, and the watch says so."""
        self.put(self.bound(name))

    def devices(self, name: str) -> tuple[int, ...]:
        """Of a pod."""
        return self.table.devices_of(f"default/{name}")

    def free(self, node: str) -> list[int]:
        """Thousandths left of each device."""
        row = self.state.row_of[node]
        return list(map(int, self.table.free_milli[row, : self.table.n_devices[row]]))
