"""Twelve pods on three nodes as a reading has them: for tests of what is remarked on."""

from __future__ import annotations

import numpy as np

from forecast.service_key import ServiceKey
from trainer.prometheus.node_names import NodeFacts
from trainer.prometheus.pods_of_day import Life, PodsOfDay

N_TICKS = 6
NODES = ("n1", "n2", "n3")


def pods_on_nodes(host_network: str = "", kind: str = "Deployment") -> PodsOfDay:
    """Four pods on each node, all day. host_network: the node whose pods are on it. kind: of their owners."""
    names = tuple(("shop", f"pod-{number:02d}") for number in range(12))
    lives = tuple(
        Life(*name, f"uid-{name[1]}", node, ServiceKey("shop", kind, f"app-{number % 4}"), node == host_network)
        for number, name in enumerate(names)
        for node in (NODES[number % 3],)
    )
    return PodsOfDay(names, lives, np.tile(np.arange(12)[:, None], (1, N_TICKS)))


def facts() -> NodeFacts:
    """Of nodes on containerd, without addresses and capacities."""
    return NodeFacts(frozenset(NODES), {}, {}, {}, dict.fromkeys(NODES, "containerd://1.7"))
