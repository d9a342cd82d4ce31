"""Bind plugin NodeGuard: a pod that waited for its binding is not bound to a node that is gone meanwhile.

The API server does not look: it binds to any name, and the pod would wait there until somebody deletes it.
"""

from __future__ import annotations

from extender.framework.status import Code, Status
from scorer.cluster.objects import PodInfo
from scorer.cluster.state import ClusterState

__all__ = ["NodeGuard"]


class NodeGuard:
    """Implements Bind; to be asked before the plugin that binds."""

    name = "NodeGuard"

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = the node is there. Two looks at tables, without their lock: what changes in between, changes after."""
        row = self._state.row_of.get(node)
        if row is None or self._state.nodes[row] is None or self._state.names[row] != node:
            return Status(Code.UNSCHEDULABLE, self.name, f"node {node} is gone")
        return Status(Code.SKIP, self.name)
