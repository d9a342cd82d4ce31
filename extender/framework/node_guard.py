"""Plugin NodeGuard: a pod that waited for its binding is not bound to a node that is gone or another one meanwhile.

The API server does not look: it binds to any name. On a node that is gone the pod would wait until it is deleted, and
a node that was made anew under the name may be smaller, or have other taints.
"""

from __future__ import annotations

from typing import Final

from extender.framework.status import SUCCESS, Code, Status
from scorer.cluster.objects import NodeInfo, PodInfo
from scorer.cluster.state import ClusterState

__all__ = ["NodeGuard"]


class NodeGuard:
    """Implements Reserve and Bind; the latter is to be asked before the plugin that binds."""

    name: Final = "NodeGuard"

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._decided: dict[str, NodeInfo] = {}  # what the decision about a pod saw, by UID

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """See Reserve."""
        if (seen := self._now(node)) is not None:
            self._decided[pod.uid] = seen
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """See Reserve."""
        self._decided.pop(pod.uid, None)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = the node is there, and as it was. Looks at tables without their lock: what changes meanwhile, changes
        after."""
        before, now = self._decided.pop(pod.uid, None), self._now(node)
        if now is None:
            return Status(Code.UNSCHEDULABLE, self.name, f"node {node} is gone")
        if before is not None and before is not now and _what_decides(before) != _what_decides(now):
            return Status(Code.UNSCHEDULABLE, self.name, f"node {node} has changed since it was chosen")
        return Status(Code.SKIP, self.name)

    def _now(self, node: str) -> NodeInfo | None:
        row = self._state.row_of.get(node)
        return None if row is None or self._state.names[row] != node else self._state.nodes[row]


def _what_decides(node: NodeInfo) -> tuple[object, ...]:
    return node.allocatable, node.labels, node.taints, node.unschedulable
