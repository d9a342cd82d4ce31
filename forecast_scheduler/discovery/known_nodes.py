"""Whether a store measures this cluster: which of the API server's nodes its metrics name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from forecast_scheduler.discovery.services import ClusterNodes
from trainer.prometheus.node_names import always, names_of_nodes
from trainer.prometheus.recording_rules import NODE_USAGE
from trainer.prometheus.shape import on_node

Labels = Mapping[str, str]

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
_IDENTITY: Final = ("system_uuid", "provider_id")
NODES_QUERY: Final = f"group by (node, internal_ip, {', '.join(_IDENTITY)}) ({on_node(_VECTOR)})"


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """How many of the cluster's nodes a store knows, and how many nodes of others: `namesakes` have a name of ours."""

    known: int
    of: int
    others: int
    namesakes: int = 0

    @property
    def share(self) -> float:
        return self.known / self.of if self.of else 0.0

    def __str__(self) -> str:
        others = f", and {self.others} that the cluster does not have" if self.others else ""
        others += f", and {self.namesakes} of the same names in another cluster" if self.namesakes else ""
        return f"it knows {self.known} of {self.of} nodes{others}"


def known_nodes(nodes: ClusterNodes, series: Sequence[Labels]) -> KnownNodes:
    """Compare an answer to NODES_QUERY with the nodes of the API server."""
    ours, others = by_owner(nodes, series)
    known, foreign = {node for node, _ in ours}, {node for node, _ in others}
    namesakes = foreign & nodes.addresses.keys()
    return KnownNodes(len(known), len(nodes.addresses), len(foreign - namesakes), len(namesakes))


def by_owner(
    nodes: ClusterNodes, series: Iterable[Labels]
) -> tuple[list[tuple[str, Labels]], list[tuple[str, Labels]]]:
    """Part series about nodes into ours and others, each with the name that the API server has for the node.

    A node of the same name in another cluster is another machine: of identity and address, which kube_node_info has
    from the API server, none may differ.
    """
    owners = {address: always(node) for node, known in nodes.addresses.items() for address in known}
    named = [labels for labels in series if labels.get("node")]
    names = names_of_nodes(nodes.addresses, owners, {}, {labels["node"] for labels in named})
    ours, others = list[tuple[str, Labels]](), list[tuple[str, Labels]]()
    for labels in named:
        node = names.node(labels["node"])
        (ours if _is_ours(nodes, node, labels) else others).append((node, labels))
    return ours, others


def _is_ours(nodes: ClusterNodes, node: str, labels: Labels) -> bool:
    if node not in nodes.addresses:
        return False
    addresses, identity = nodes.addresses[node], nodes.identities.get(node, {})
    if addresses and labels.get("internal_ip", "") not in {"", *addresses}:
        return False
    return all(labels.get(name, "") in ("", identity[name]) for name in _IDENTITY if name in identity)
