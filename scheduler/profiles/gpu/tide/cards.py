"""GPUs of pods and nodes as numbers, and which pool a node is of."""

from __future__ import annotations

from collections.abc import Callable

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.demand import WHOLE, gpu_demand
from placement.devices.node_cards import cards_of, model_of
from placement.devices.options import DeviceOptions
from scheduler.profiles.gpu.tide.gpu_holders import NodeGpus, PodGpus, PoolOf

UNKNOWN_MODEL = "unknown"
"""Pool of nodes with GPUs whose labels do not say of which model."""


def pod_gpus(options: DeviceOptions) -> PodGpus:
    """Whole ones and shares; a share that is asked for by memory counts as a whole one until there is a node."""

    def gpus(pod: PodInfo, node: NodeInfo | None) -> float:
        demand = gpu_demand(pod, options)
        if demand is None:
            return 0.0
        if not demand.memory_units:
            return demand.count * demand.milli / WHOLE
        return demand.count * min(WHOLE, demand.on(cards_of(node, options).memory)) / WHOLE

    return gpus


def node_gpus(options: DeviceOptions, offered: Callable[[str], int] = lambda node: 0) -> NodeGpus:
    """As many as there are. offered: by slices on a node by name, where no device plugin offers any."""
    return lambda node: float(cards_of(node, options).n or offered(node.name))


def pool_of(options: DeviceOptions, pool_label: str, is_ours: Callable[[NodeInfo], bool]) -> PoolOf:
    """The card model, and the label's value behind a slash where `pool_label` is set and the node has it."""

    def pool(node: NodeInfo) -> str | None:
        if not is_ours(node):
            return None
        model = model_of(node, options) or UNKNOWN_MODEL
        part = node.labels.get(pool_label, "") if pool_label else ""
        return f"{model}/{part}" if part else model

    return pool
