"""Filter NodeUnschedulable: nodes that are cordoned, unless the pod tolerates the taint that cordoning brings.

Source: framework/plugins/nodeunschedulable/node_unschedulable.go. TaintToleration sees the taint itself, which a
controller adds a moment later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from kube.objects.objects import PodInfo, Taint
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import found
from placement.filters.taint_toleration import any_tolerates

_REASON: Final = "node(s) were unschedulable"
_TAINT: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class NodeUnschedulable(NodeFilter):
    """Unresolvable."""

    name = "NodeUnschedulable"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One look at the tolerations, whatever the number of nodes."""
        nodes = view.index.taints.unschedulable
        if not nodes.any() or any_tolerates(pod.constraints.tolerations, _TAINT):
            return ()
        return found(nodes, view, _REASON, preemptible=False)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return pod.constraints.tolerations
