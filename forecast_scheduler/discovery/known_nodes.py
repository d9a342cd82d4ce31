"""Whether a store measures this cluster: which of the API server's nodes its metrics name. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from forecast_scheduler.discovery.services import ClusterNodes
from trainer.prometheus.node_names import always, names_of_nodes
from trainer.prometheus.recording_rules import NODE_USAGE
from trainer.prometheus.shape import on_node

_ABOUT_NODES: Final = (
    "kube_node_info",
    'kube_node_status_capacity{resource="cpu"}',
    "machine_cpu_cores",
    "node_memory_MemTotal_bytes",
    f'{NODE_USAGE}{{resource="cpu"}}',
)
"""One series per node each: of kube-state-metrics, cAdvisor, node-exporter and our own rules. An application's own
Prometheus scrapes none of them."""

_VECTOR: Final = f"({' or '.join(_ABOUT_NODES)})"
NODES_QUERY: Final = f"group by (node, internal_ip) ({on_node(_VECTOR)})"


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """How many of the cluster's nodes a store knows, and how many nodes of others."""

    known: int
    of: int
    others: int

    @property
    def share(self) -> float:
        return self.known / self.of if self.of else 0.0

    def __str__(self) -> str:
        others = f", and {self.others} that the cluster does not have" if self.others else ""
        return f"it knows {self.known} of {self.of} nodes{others}"


def known_nodes(nodes: ClusterNodes, series: Iterable[Mapping[str, str]]) -> KnownNodes:
    """Compare an answer to NODES_QUERY with the nodes of the API server.

    A node of the same name in another cluster has another address: if kube_node_info has addresses, one must agree.
    """
    measured: dict[str, set[str]] = defaultdict(set)
    for labels in series:
        if name := labels.get("node"):
            measured[name].add(labels.get("internal_ip", ""))
    owners = {address: always(node) for node, known in nodes.addresses.items() for address in known}
    names = names_of_nodes(nodes.addresses, owners, {}, measured)
    known, others = set[str](), set[str]()
    for name, addresses in measured.items():
        node = names.node(name)
        own = nodes.addresses.get(node)
        addresses = addresses - {""}
        is_ours = own is not None and (not own or not addresses or bool(own & addresses))
        (known if is_ours else others).add(node)
    return KnownNodes(len(known), len(nodes.addresses), len(others))
