"""Answers of metrics.k8s.io: what metrics-server counted of all nodes and pods over the last 15 s or so. Pure.

https://github.com/kubernetes/metrics (v1beta1): {"items": [{"metadata": {"name": "n1"}, "timestamp": "...", "window":
"10s", "usage": {"cpu": "156340404n", "memory": "1120Ki"}}]}; of pods with "containers": [{"name", "usage"}].
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from base.errors import InputError
from kube.objects.quantity import parse_quantity
from trainer.sampling.readings import NODE, Measured, NodeReading, Series, UnreadableText

NODES_PATH = "/apis/metrics.k8s.io/v1beta1/nodes"
PODS_PATH = "/apis/metrics.k8s.io/v1beta1/pods"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Container(msgspec.Struct):
    name: str
    usage: dict[str, str]


class _Item(msgspec.Struct):
    metadata: _Metadata
    timestamp: datetime
    usage: dict[str, str] = {}
    containers: list[_Container] = []


class _Page(msgspec.Struct):
    items: list[_Item]


_decoder = msgspec.json.Decoder(_Page)


def read_metrics_api(
    nodes: bytes, pods: bytes, node_of: Mapping[tuple[str, str], str], at: float
) -> dict[str, NodeReading]:
    """What both lists say, by node. node_of: where pods run, by (namespace, name). Raises UnreadableText."""
    cores: dict[str, dict[Series, Measured]] = {}
    memory: dict[str, dict[Series, Measured]] = {}
    try:
        for item in _decoder.decode(nodes).items:
            _put(item.metadata.name, NODE, item.usage, item.timestamp, cores, memory)
        for item in _decoder.decode(pods).items:
            where = item.metadata.namespace, item.metadata.name
            if (node := node_of.get(where)) is not None and node in cores:
                for container in item.containers:
                    _put(node, (*where, container.name), container.usage, item.timestamp, cores, memory)
    except (msgspec.DecodeError, InputError) as error:
        raise UnreadableText(f"metrics.k8s.io answers with what it cannot say: {error}") from error
    return {node: NodeReading(at, cores=of_node, memory=memory[node]) for node, of_node in cores.items()}


def _put(
    node: str,
    series: Series,
    usage: Mapping[str, str],
    timestamp: datetime,
    cores: dict[str, dict[Series, Measured]],
    memory: dict[str, dict[Series, Measured]],
) -> None:
    measured_at = timestamp.timestamp()
    cores.setdefault(node, {})
    memory.setdefault(node, {})
    for name, into in (("cpu", cores), ("memory", memory)):
        if name in usage:
            into[node][series] = Measured(max(parse_quantity(usage[name]), 0.0), measured_at)
