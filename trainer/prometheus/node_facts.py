"""What Kubernetes says of its nodes on one day: names, addresses, capacities, and what they run on. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Floats
from forecast.resources import CPU, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.labels import node_names
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NodeNames

_RESOURCES = {"cpu": CPU, "memory": MEMORY}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of nodes by name; capacities in base units.

    nodes_of  : the nodes that had an internal address, by address
    runs_on   : container runtime and operating system of each node, as far as they are told
    """

    names: frozenset[str]
    nodes_of: Mapping[str, tuple[str, ...]]
    capacities: Mapping[tuple[str, int], float]
    allocatables: Mapping[tuple[str, int], float]
    runs_on: Mapping[str, str] = field(default_factory=dict)

    def platform(self, nodes: Iterable[str]) -> str:
        """What most of these nodes run on, in brackets; "" where that is not told."""
        most = Counter(self.runs_on.get(node, "") for node in nodes).most_common(1)
        return f" ({most[0][0]})" if most and most[0][0] else ""

    def capacity(self, nodes: Sequence[str], speed: Sequence[Matrix], names: NodeNames) -> Floats:
        """(n_nodes, n_resources), NaN = unknown. speed: answers to node_network_speed."""
        values = np.full((len(nodes), len(RESOURCES)), np.nan)
        row = {node: number for number, node in enumerate(nodes)}
        for (node, resource), value in self.capacities.items():
            if (name := names.node(node)) in row:
                values[row[name], resource] = value
        for part in speed:
            told = zip(node_names("node_network_speed", part.labels, once=False), part.values.tolist(), strict=True)
            for told_name, value in told:
                for name in names.nodes(told_name) & row.keys():
                    values[row[name], NETWORK] = np.fmax(values[row[name], NETWORK], value)
        return values

    def allocatable(self, nodes: Sequence[str], names: NodeNames) -> Floats:
        """(n_nodes, 2) CPU and memory, NaN = unknown."""
        values = np.full((len(nodes), 2), np.nan)
        row = {node: number for number, node in enumerate(nodes)}
        for (node, resource), value in self.allocatables.items():
            if (name := names.node(node)) in row:
                values[row[name], (CPU, MEMORY).index(resource)] = value
        return values


def node_facts(info: Sequence[Matrix], capacity: Sequence[Matrix], allocatable: Sequence[Matrix]) -> NodeFacts:
    """From the answers to node_info, node_capacity and node_allocatable."""
    nodes: dict[str, str] = {}
    addresses: dict[str, list[str]] = defaultdict(list)
    for part in info:
        for labels in part.labels:
            if node := labels.get("node"):
                what = labels.get("container_runtime_version", ""), labels.get("os_image", "")
                nodes[node] = ", ".join(filter(None, what))
                if (address := labels.get("internal_ip", "")) and node not in addresses[address]:
                    addresses[address].append(node)
    capacities, allocatables = _by_resource("node_capacity", capacity), _by_resource("node_allocatable", allocatable)
    named = {node for node, _ in (*capacities, *allocatables) if node not in addresses}
    nodes_of = {address: tuple(owners) for address, owners in addresses.items() if address not in nodes}
    return NodeFacts(frozenset(nodes | dict.fromkeys(named, "")), nodes_of, capacities, allocatables, nodes)


def _by_resource(name: str, parts: Sequence[Matrix]) -> dict[tuple[str, int], float]:
    return {
        (node, _RESOURCES[labels["resource"]]): value
        for part in parts
        for node, labels, value in zip(
            node_names(name, part.labels, once=False), part.labels, part.values.tolist(), strict=True
        )
        if labels.get("resource") in _RESOURCES
    }
