"""What the kubelet of one node says of CPU and memory, and the text in which it says so. Pure.

    GET /metrics/resource

    node_cpu_usage_seconds_total 6197.0 1750705774670
    node_memory_working_set_bytes 1.13e+09 1750705774670
    pod_cpu_usage_seconds_total{namespace="shop",pod="cart-0"} 9.2 1750705767087
    container_cpu_usage_seconds_total{container="main",namespace="shop",pod="cart-0"} 9.1 1750705772883
    ...

Source: pkg/kubelet/metrics/collectors/resource_metrics.go of Kubernetes; stable since 1.29. The times say when the
kubelet measured, up to 15 s ago. Disk, network and log bytes are not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from base.errors import ForecastError

Series = tuple[str, str, str]
"""(namespace, pod, container); container "": the pod as a whole; all empty: the node."""

NODE: Final[Series] = ("", "", "")

_CPU: Final = "_cpu_usage_seconds_total"
_MEMORY: Final = "_memory_working_set_bytes"
_ABOUT: Final = tuple(f"{what}{of}" for what in ("node", "pod", "container") for of in (_CPU, _MEMORY))
_MOST_SKEW_SECONDS: Final = 60.0
"""A node whose clock differs by more measures at a time that we do not know: when we asked counts."""


class UnreadableText(ForecastError):
    """The answer is no text of metrics, or says impossible things."""


@dataclass(frozen=True, slots=True)
class Measured:
    """value: core-seconds so far, cores, or bytes. at: unix seconds when it was measured."""

    value: float
    at: float


@dataclass(frozen=True, slots=True)
class NodeReading:
    """One answer about one node.

    at          : unix seconds when it was asked
    cpu_seconds : counters, by series
    cores       : means since the reading before, from who counts for us (metrics.k8s.io), by series
    memory      : working set in bytes, by series
    """

    at: float
    cpu_seconds: Mapping[Series, Measured] = field(default_factory=dict)
    cores: Mapping[Series, Measured] = field(default_factory=dict)
    memory: Mapping[Series, Measured] = field(default_factory=dict)


def read_resource_metrics(text: str, at: float) -> NodeReading:
    """What an answer of /metrics/resource says. Raises UnreadableText; a negative or infinite value is left out."""
    lines = [line for line in text.splitlines() if line.startswith(_ABOUT)]
    cpu: dict[Series, Measured] = {}
    memory: dict[Series, Measured] = {}
    try:
        for name, labels, value, timestamp in _samples(lines):
            series = labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", "")
            is_node = name.startswith("node_")
            if is_node != (series == NODE) or (not is_node and not all(series[:2])):
                raise UnreadableText(f"{name} has the labels {', '.join(sorted(labels)) or 'none'}")
            if math.isfinite(value) and value >= 0:
                measured_at = timestamp if timestamp is not None and abs(timestamp - at) <= _MOST_SKEW_SECONDS else at
                (cpu if name.endswith(_CPU) else memory)[series] = Measured(value, measured_at)
    except (ValueError, LookupError, OverflowError) as error:
        raise UnreadableText(f"it is no text of metrics: {' '.join(str(error).split())[:120]}") from error
    if NODE not in cpu:
        raise UnreadableText(f"it has no node{_CPU}: is this /metrics/resource of a kubelet?")
    return NodeReading(at, cpu_seconds=cpu, memory=memory)


def _samples(lines: Iterable[str]) -> Iterable[tuple[str, Mapping[str, str], float, float | None]]:
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            yield sample.name, sample.labels, float(sample.value), _unix_seconds(sample.timestamp)


def _unix_seconds(timestamp: object) -> float | None:
    return None if timestamp is None else float(timestamp)  # type: ignore[arg-type]


def of_pods(values: Mapping[Series, float]) -> dict[tuple[str, str], float]:
    """The sum by (namespace, pod) over containers; where none is named, what is said of the pod as a whole.

    The whole counts the pause container, too. The trainer reads the sum over containers from Prometheus, as well.
    """
    by_containers: dict[tuple[str, str], float] = {}
    whole: dict[tuple[str, str], float] = {}
    for (namespace, pod, container), value in values.items():
        if container:
            by_containers[namespace, pod] = by_containers.get((namespace, pod), 0.0) + value
        elif pod:
            whole[namespace, pod] = value
    return whole | by_containers
