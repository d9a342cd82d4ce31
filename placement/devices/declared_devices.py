"""What objects declare about devices: which cards a Node has, and in annotations which of them a pod has.

    forecast-scheduler.io/gpu-index: "0,3"                 ours, of every pod with devices

    ALIYUN_COM_GPU_MEM_IDX: "3"                            of pods that request memory of a card
    ALIYUN_COM_GPU_MEM_POD: "4"                            the memory that the pod requests, in the plugin's units
    ALIYUN_COM_GPU_MEM_DEV: "16"                           the memory that the card has
    ALIYUN_COM_GPU_MEM_ASSIGNED: "false"
    ALIYUN_COM_GPU_MEM_ASSUME_TIME: "1795370000000000000"  nanoseconds since 1970

Those of Alibaba are read by AliyunContainerService/gpushare-device-plugin (pkg/gpu/nvidia: allocate.go, podutils.go)
and written as AliyunContainerService/gpushare-scheduler-extender does (pkg/utils/pod.go). When a container is to
start the plugin takes the pod of its node that is Pending, has a time, ASSIGNED "false" and exactly the memory of the
container, of several that of the earliest time; it gives it the card IDX, and sets ASSIGNED to "true" and the time to
now.

Of a pod that waits none of this counts: the Binding writes over it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cluster.tables.columns import whole_units
from kube.objects.objects import ANNOTATION_PREFIX, SHARING_PLUGIN_PREFIX, NodeInfo, PodInfo
from placement.devices.device_demand import WHOLE, GpuDemand, gpu_demand
from placement.node_rule_settings import DeviceOptions

GPU_INDEX: Final = ANNOTATION_PREFIX + "gpu-index"

MOST_DEVICES: Final = 1024
"""Of one node. What says more is not read: a column is kept for each."""

_IDX: Final = SHARING_PLUGIN_PREFIX + "IDX"
_POD: Final = SHARING_PLUGIN_PREFIX + "POD"
_DEV: Final = SHARING_PLUGIN_PREFIX + "DEV"
_ASSIGNED: Final = SHARING_PLUGIN_PREFIX + "ASSIGNED"
_ASSUME_TIME: Final = SHARING_PLUGIN_PREFIX + "ASSUME_TIME"
_LONGEST: Final = 5 * MOST_DEVICES

PodGpus = Callable[[PodInfo, NodeInfo | None], float]
"""GPUs that a pod takes, a share of one if it shares; 0 = none. The node: None = it has none yet."""

NodeGpus = Callable[[NodeInfo], float]


def indices_of(pod: PodInfo, demand: GpuDemand) -> tuple[int, ...] | None:
    """The devices that it says it has, ascending; None = it does not say, or not as many as it asks for.

    Of a pod that requests memory the plugin's own index comes first: that is the card it was given.
    """
    said = pod.annotations
    if not said:
        return None
    for key in (_IDX, GPU_INDEX) if demand.memory_units else (GPU_INDEX, _IDX):
        if key in said:
            found = _indices(said[key])
            if len(found) == demand.count:
                return found
    return None


def card_memory(pod: PodInfo) -> int:
    """Return the units of memory of the pod's card, as its scheduler annotated them; 0 = no annotation."""
    text = pod.annotations.get(_DEV, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else 0


def index_annotation(devices: Sequence[int]) -> dict[str, str]:
    """Return our annotation of the cards that a pod has, by index."""
    return {GPU_INDEX: ",".join(map(str, devices))}


def sharing_annotations(device: int, pod_memory: int, device_memory: int, now: float) -> dict[str, str]:
    """Those of the sharing plugin. now: unix seconds."""
    return {
        _IDX: str(device),
        _POD: str(pod_memory),
        _DEV: str(device_memory),
        _ASSIGNED: "false",
        _ASSUME_TIME: str(int(now * 1e6) * 1000),
    }


@lru_cache(maxsize=4096)
def _indices(text: str) -> tuple[int, ...]:
    """Return the indices, ascending; empty = unreadable: no numbers, one twice, or beyond what any node has."""
    if not text.isascii() or len(text) > _LONGEST:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and len(part) <= 4 for part in parts):
        return ()
    found = sorted(set(map(int, parts)))
    return tuple(found) if len(found) == len(parts) and found[-1] < MOST_DEVICES else ()


@dataclass(frozen=True, slots=True)
class NodeCards:
    """
    n      : devices, 1024 at most
    memory : units of the sharing plugin that each has; 0 = that plugin is not there
    model  : as a label says it; '' = no label does
    """

    n: int = 0
    memory: int = 0
    model: str = ""


NO_CARDS: Final = NodeCards()


def cards_of(node: NodeInfo | None, options: DeviceOptions) -> NodeCards:
    """A node that is gone has none. Whole cards and those that are shared are the same ones: the larger number counts.

    Memory is shared out evenly, as NewNodeInfo of gpushare-scheduler-extender does (pkg/cache/nodeinfo.go).
    """
    if node is None:
        return NO_CARDS
    names = (*options.resources, options.count_resource)
    n = min(MOST_DEVICES, max(_units(node.allocatable, name) for name in names))
    if n <= 0:
        return NO_CARDS
    memory = _units(node.capacity, options.shared_memory_resource)
    cards = _units(node.capacity, options.count_resource) or n
    return NodeCards(n, memory // cards, model_of(node, options))


def model_of(node: NodeInfo, options: DeviceOptions) -> str:
    """The card model that the first of the labels says; '' = none does."""
    return next((node.labels[label] for label in options.model_labels if node.labels.get(label)), "")


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


def _units(amounts: Mapping[str, float], kind: str) -> int:
    return max(0, whole_units(kind, amounts[kind])) if kind in amounts else 0
