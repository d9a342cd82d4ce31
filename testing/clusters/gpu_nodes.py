"""Nodes with cards and pods that use them, on real servers; who has which device, reckoned from API objects alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from testing.clusters.own_nodes import DOMAIN, OURS
from testing.servers.cluster_objects import Manifest, node, pod

GPUS: Final = "gpu-scheduler"
"""The profile's scheduler name."""

GPU: Final = "nvidia.com/gpu"
INDEX: Final = "forecast-scheduler.io/gpu-index"
_MILLI: Final = "forecast-scheduler.io/gpu-milli"
_PREFIX: Final = "forecast-scheduler.io/"


def gpu_node(name: str, gpus: int = 4, *, model: str = "NVIDIA-A100-SXM4-80GB", cpu: int = 64) -> Manifest:
    """Of our domain."""
    labels = {DOMAIN: OURS, "nvidia.com/gpu.product": model}
    extended = {GPU: str(gpus)} if gpus else None
    return node(name, cpu=str(cpu), memory="512Gi", reserved_cpu="0m", labels=labels, extended=extended)


def gpu_pod(
    name: str,
    *,
    gpus: int = 0,
    milli: int = 0,
    cpu: str = "100m",
    priority: int | None = None,
    says: Mapping[str, str] | None = None,
    **rest: Any,
) -> Manifest:
    """
    gpus  : whole ones
    milli : thousandths of one
    says  : annotations without their prefix, such as {"gpu-type": "T4"}
    """
    said = {_PREFIX + key: value for key, value in (says or {}).items()} | ({_MILLI: str(milli)} if milli else {})
    requests = {"cpu": cpu, "memory": "16Mi"} | ({GPU: str(gpus)} if gpus else {})
    limits = {GPU: str(gpus)} if gpus else None
    made = pod(name, requests=requests, limits=limits, annotations=said, scheduler_name=GPUS, **rest)
    if priority is not None:
        made["spec"] |= {"priorityClassName": f"priority-{priority}"}
    return made


def devices_said(pods: Iterable[Manifest], prefix: str = "") -> dict[str, str]:
    """What pods that have a node, and whose names begin so, say of their devices; by name, '' = nothing."""
    return {
        one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(INDEX, "")
        for one in pods
        if one["spec"].get("nodeName") and one["metadata"]["name"].startswith(prefix)
    }


def overlapping(pods: Iterable[Manifest], nodes: Iterable[Manifest]) -> list[str]:
    """What is wrong: devices of which more is held than there is, indices of devices that are not there, and pods that
    do not say as many as they asked for."""
    has = {one["metadata"]["name"]: int(one["status"]["allocatable"].get(GPU, "0")) for one in nodes}
    held: dict[tuple[str, int], int] = defaultdict(int)
    wrong = []
    for one in pods:
        said = one["metadata"].get("annotations", {})
        name, on = one["metadata"]["name"], one["spec"].get("nodeName", "")
        whole = int(one["spec"]["containers"][0]["resources"].get("requests", {}).get(GPU, "0"))
        count, milli = (whole, 1000) if whole else (int(_MILLI in said), int(said.get(_MILLI, "0")))
        if not on or not count or one["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        devices = {int(index) for index in said.get(INDEX, "").split(",") if index}
        if len(devices) != count or not all(device < has[on] for device in devices):
            wrong.append(f"{name} on {on} asked for {count} of {has[on]} and has {said.get(INDEX)!r}")
        for device in devices:
            held[on, device] += milli
    return wrong + [f"{milli} thousandths of device {at[1]} of {at[0]}" for at, milli in held.items() if milli > 1000]
