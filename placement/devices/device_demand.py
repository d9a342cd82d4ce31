"""What devices a pod asks for: whole ones by a resource, a share of one by an annotation or by its memory.

    resources: {limits: {nvidia.com/gpu: 2}}                2 whole cards
    annotations: {forecast-scheduler.io/gpu-milli: "500"}   half a card
    resources: {limits: {aliyun.com/gpu-mem: 4}}            on a node with cards of 16: a quarter of one
    both of the last                                        the larger share

Thirds do not add up in thousandths: what is asked for as memory is rounded down here, and counted as memory where it
matters (node_devices.py).

Bound pods count by the same rules, also those of other schedulers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cluster.tables.columns import request_units
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.node_rule_settings import DeviceOptions

GPU_MILLI: Final = ANNOTATION_PREFIX + "gpu-milli"

WHOLE: Final = 1000
"""Thousandths of a device."""


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """
    count        : devices, >= 1
    milli        : thousandths of each, 1..1000; 1000 = whole; count > 1 only with 1000
    memory_units : of the sharing plugin's memory, on one device, whatever thousandths that is; 0 = it asks for none.
                   `on` says what comes of it
    """

    count: int
    milli: int
    memory_units: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it takes whole devices wherever it lands."""
        return self.milli == WHOLE

    def on(self, memory: int) -> int:
        """Return thousandths, rounded down, of each device of a node whose devices have `memory` units, 0 = unknown.

        More than 1000: no device there is large enough.
        """
        if not self.memory_units:
            return self.milli
        if self.memory_units > memory:
            return WHOLE + 1
        return max(self.milli, WHOLE * self.memory_units // memory)


@lru_cache(maxsize=4096)
def _demand(count: int, milli: int, memory_units: int) -> GpuDemand:
    """One object for what is asked for again and again."""
    return GpuDemand(count, milli, memory_units)


def gpu_demand(pod: PodInfo, options: DeviceOptions) -> GpuDemand | None:
    """None = it asks for none. What cannot be read asks for nothing: such pods are not placed, see demand_mistake."""
    requests = pod.requests
    for resource in options.resources:
        if resource in requests and (count := request_units(resource, requests[resource])) > 0:
            return _demand(sum(_whole(pod, options)) if len(options.resources) > 1 else count, WHOLE, 0)
    memory = 0
    if options.shared_memory_resource in requests:
        kind = options.shared_memory_resource
        memory = max(0, request_units(kind, requests[kind]))
    text = pod.annotations.get(GPU_MILLI) if pod.annotations else None
    milli = 0 if text is None else _milli(text)
    if not memory and not milli:
        return None
    return _demand(1, milli or 1, memory)


def demand_mistake(pod: PodInfo, options: DeviceOptions) -> str:
    """Why what a pod says of its devices cannot be used, for people; '' = it can."""
    text = pod.annotations.get(GPU_MILLI)
    whole = _whole(pod, options)
    memory = pod.requests.get(options.shared_memory_resource, 0.0) > 0
    if text is not None:
        if not _milli(text):
            return f"annotation {GPU_MILLI} is {text[:20]!r}: it must be a whole number from 1 to {WHOLE}"
        if whole and _milli(text) != WHOLE:
            return f"annotation {GPU_MILLI} asks for a share, and the pod requests whole devices: leave one of them out"
    if whole and memory:
        return f"the pod requests whole devices and {options.shared_memory_resource}: leave one of them out"
    if len(whole) > 1:
        return "the pod requests devices of several resources: it can have those of one"
    return ""


def asks_by_name(pod: PodInfo, options: DeviceOptions) -> bool:
    """Whether it requests whole devices by a resource, which are handed out without a look at annotations."""
    return any(pod.requests.get(resource, 0.0) > 0 for resource in options.resources)


def _whole(pod: PodInfo, options: DeviceOptions) -> list[int]:
    """Devices by each of the resources that it requests."""
    counts = (request_units(one, pod.requests[one]) for one in options.resources if one in pod.requests)
    return [count for count in counts if count > 0]


@lru_cache(maxsize=1024)
def _milli(text: str) -> int:
    """0 = it is no whole number from 1 to 1000."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 4
    return int(text) if is_number and 1 <= int(text) <= WHOLE else 0
