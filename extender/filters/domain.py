"""Filter Domain: nodes that belong to another scheduler.

The API server does not check fit on binding: two independent schedulers on one node can overcommit it. Node label
`forecast-scheduler.io/domain` parts the nodes among them; every node is in exactly one domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from extender.index.node_labels import ABSENT
from scorer.cluster.objects import ANNOTATION_PREFIX, PodInfo

__all__ = ["DOMAIN_LABEL", "Domain"]

DOMAIN_LABEL: Final = ANNOTATION_PREFIX + "domain"
_REASON: Final = "node(s) belonged to another scheduling domain"


class Domain:
    """Unresolvable, and for every pod: who may place on a node does not depend on what is placed."""

    name = "Domain"

    def __init__(self, domain: str = "") -> None:
        """domain: of this scheduler; '' = nodes without the label, or with an empty one"""
        self.domain = domain

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One comparison per node."""
        column = view.index.labels.column(DOMAIN_LABEL)
        own = np.asarray(column.values == column.number_of.get(self.domain, len(column.names)))
        if not self.domain:
            own |= column.values == ABSENT
        return found(~own, view, _REASON, preemptible=False)
