"""Names, addresses and capacities of nodes, as kube-state-metrics and node-exporter report them. Pure.

Where node-exporter's `instance` is an address rather than a name, kube_node_info{node, internal_ip} says whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forecast.arrays import Floats
from forecast.resources import CPU, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.labels import node_names
from trainer.prometheus.matrix import Matrix

_RESOURCES = {"cpu": CPU, "memory": MEMORY}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of nodes by name; capacities in base units.

    name_of : name of the node by internal address
    """

    names: frozenset[str]
    name_of: Mapping[str, str]
    capacities: Mapping[tuple[str, int], float]
    allocatables: Mapping[tuple[str, int], float]

    def all_nodes(self, seen: set[str]) -> tuple[str, ...]:
        """Names of all nodes, sorted; seen: names and addresses that occur elsewhere."""
        return tuple(sorted(self.names | {self.name_of.get(name, name) for name in seen}))

    def rows(self, nodes: Sequence[str]) -> dict[str, int]:
        """Row of each node, by name and by address."""
        row = {node: number for number, node in enumerate(nodes)}
        return {address: row[name] for address, name in self.name_of.items() if name in row} | row

    def capacity(self, nodes: Sequence[str]) -> Floats:
        """(n_nodes, n_resources), NaN = unknown."""
        values = np.full((len(nodes), len(RESOURCES)), np.nan)
        row = self.rows(nodes)
        for (node, resource), value in self.capacities.items():
            values[row[node], resource] = value
        return values

    def allocatable(self, nodes: Sequence[str]) -> Floats:
        """(n_nodes, 2) CPU and memory, NaN = unknown."""
        values = np.full((len(nodes), 2), np.nan)
        row = self.rows(nodes)
        for (node, resource), value in self.allocatables.items():
            values[row[node], (CPU, MEMORY).index(resource)] = value
        return values


def node_facts(
    info: Sequence[Matrix], capacity: Sequence[Matrix], allocatable: Sequence[Matrix], speed: Sequence[Matrix]
) -> NodeFacts:
    """From the answers to node_info, node_capacity, node_allocatable and node_network_speed."""
    known = {
        labels["node"]: labels.get("internal_ip", "") for part in info for labels in part.labels if labels.get("node")
    }
    name_of = {address: node for node, address in known.items() if address and address not in known}
    capacities = _by_resource("node_capacity", capacity)
    for part in speed:
        for node, value in zip(node_names("node_network_speed", part.labels), part.values.tolist(), strict=True):
            capacities[name_of.get(node, node), NETWORK] = value
    allocatables = _by_resource("node_allocatable", allocatable)
    names = frozenset({*known, *(node for node, _ in capacities), *(node for node, _ in allocatables)})
    return NodeFacts(names, name_of, capacities, allocatables)


def _by_resource(name: str, parts: Sequence[Matrix]) -> dict[tuple[str, int], float]:
    return {
        (node, _RESOURCES[labels["resource"]]): value
        for part in parts
        for node, labels, value in zip(
            node_names(name, part.labels, once=False), part.labels, part.values.tolist(), strict=True
        )
        if labels.get("resource") in _RESOURCES
    }
