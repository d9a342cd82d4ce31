"""Filter Domain: nodes that belong to another scheduler.

The API server does not check fit on binding: two independent schedulers on one node can overcommit it. Node label
`forecast-scheduler.io/domain` parts the nodes among them; every node is in exactly one domain. Domains that are shared
on purpose are let through as well (docs/use/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.pod_annotations import comes_with_node
from placement.filters.rejections import found
from placement.index.node_labels import ABSENT, NodeLabels

DOMAIN_LABEL: Final = ANNOTATION_PREFIX + "domain"
_REASON: Final = "node(s) belonged to another scheduling domain"


class Domain(NodeFilter):
    """Unresolvable. It holds for every pod but those of DaemonSets that a scheduler of `daemons` places: nodes of every
    domain need their network and drivers."""

    name = "Domain"

    def __init__(self, domain: str = "", shared: Collection[str] = (), daemons: Collection[str] = ()) -> None:
        """
        domain  : of this scheduler; '' = nodes without the label, or with an empty one
        shared  : further domains, where another scheduler places pods, too
        daemons : scheduler names whose pods of DaemonSets may be on every node
        """
        self.domain, self.shared, self._daemons = domain, frozenset(shared), frozenset(daemons)

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One comparison per node and domain."""
        if pod.scheduler_name in self._daemons and comes_with_node(pod):
            return ()
        own = nodes_in(view.index.labels, {self.domain, *self.shared})
        return found(~own, view, _REASON, preemptible=False)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return comes_with_node(pod)


def nodes_in(labels: NodeLabels, domains: Collection[str]) -> Bools:
    """(n_rows,) nodes of these domains; rows without a node count as without the label."""
    column = labels.column(DOMAIN_LABEL)
    if not column.names:  # no node has the label
        return np.full(len(column.values), "" in domains)
    nodes = np.zeros(len(column.values), dtype=bool)
    for domain in domains:
        nodes |= column.values == column.number_of.get(domain, len(column.names))
    return nodes | (column.values == ABSENT) if "" in domains else nodes
