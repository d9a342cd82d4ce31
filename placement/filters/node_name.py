"""Filter NodeName: the one node that the pod's spec.nodeName names. Source: framework/plugins/nodename/node_name.go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kube.objects.objects import PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import found

_REASON: Final = "node(s) didn't match the requested node name"


class NodeName(NodeFilter):
    """Unresolvable."""

    name = "NodeName"
    woken_by = frozenset({EventKind.NODE_ADDED})

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """A pod without a node name goes anywhere."""
        if not pod.node:
            return ()
        nodes = np.ones(view.n_rows, dtype=bool)
        row = view.state.row_of.get(pod.node)
        if row is not None:
            nodes[row] = False
        return found(nodes, view, _REASON, preemptible=False)
