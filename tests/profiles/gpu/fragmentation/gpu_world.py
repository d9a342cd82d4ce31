"""A small cluster with cards in the tables: nodes, pods, and what the GPU profile keeps of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from profiles.gpu.fragmentation.pod_shapes import PodShapes
from scorer.scorer import Scorer
from tests.kube.api_objects import GIB, node, pod

NOW = 1_700_000_000.0


def card_node(name: str, *, cards: int = 2, model: str = "NVIDIA-A10", cpu: float = 16.0) -> NodeInfo:
    made = node(name, cpu=cpu, memory=64 * GIB, **({"nvidia.com/gpu": float(cards)} if cards else {}))
    return replace(made, labels={"nvidia.com/gpu.product": model} if cards else {})


def card_pod(name: str, *, whole: int = 0, milli: int = 0, cpu: float = 1.0, **more: Any) -> PodInfo:
    requests = {"cpu": cpu, "memory": GIB} | ({"nvidia.com/gpu": float(whole)} if whole else {})
    annotations = dict(more.pop("annotations", {}))
    if milli:
        annotations["forecast-scheduler.io/gpu-milli"] = str(milli)
    made = pod(name, **{"node": ""} | more)
    return replace(made, requests=requests, annotations=annotations, created=NOW)


class GpuWorld:
    def __init__(self, *nodes: NodeInfo) -> None:
        self.scorer = Scorer(clock=lambda: NOW)
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            index = PlacementIndex(cluster.state)
            self.devices = DeviceTable(cluster.state, is_assumed=cluster.assumed.__contains__)
            self.view = ClusterView(cluster, index, (self.devices,))
            self.scorer.tables.attach(INDEXED_KINDS, index)
            self.scorer.tables.attach((), self.devices)
        self.state = cluster.state
        self.shapes = PodShapes(self.devices)
        self.scorer.tables.replace(Kind.NODES, list(nodes))

    def put(self, *pods: PodInfo) -> None:
        for one in pods:
            self.scorer.tables.put(Kind.PODS, one)

    def delete(self, one: PodInfo) -> None:
        self.scorer.tables.delete(Kind.PODS, one)

    def rows(self, *names: str) -> list[int]:
        return [self.state.row_of[name] for name in names]
