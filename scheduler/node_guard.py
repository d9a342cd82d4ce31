"""Plugin NodeGuard: a pod that waited for its binding is not bound to a node that is gone or another one meanwhile.

The API server does not look: it binds to any name. On a node that is gone the pod would wait until it is deleted, and
a node that was made anew under the name may be smaller, or have other taints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo
from placement.status import SUCCESS, Code, Status


class NodeGuard:
    """Implements Reserve and Bind; the latter is to be asked before the plugin that binds."""

    name: Final = "NodeGuard"

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._decided: dict[str, NodeInfo] = {}  # what the decision about a pod saw, by UID

    def reserve(self, pod: PodInfo, node: str) -> Status:
        if (seen := _now(self._state, node)) is not None:
            self._decided[pod.uid] = seen
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self._decided.pop(pod.uid, None)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = the node is there, and as it was. Looks at tables without their lock: what changes meanwhile, changes
        after."""
        why = _why_not(node, self._decided.pop(pod.uid, None), _now(self._state, node))
        return Status(Code.UNSCHEDULABLE if why else Code.SKIP, self.name, why)


def change_of(state: ClusterState, node: str) -> Callable[[], str]:
    """Return a function that says why a node has changed since this call, '' = it has not: for requests that are sent
    again.
    """
    before = _now(state, node)
    return lambda: _why_not(node, before, _now(state, node))


def _now(state: ClusterState, node: str) -> NodeInfo | None:
    row = state.row_of.get(node)
    return None if row is None or state.names[row] != node else state.nodes[row]


def _why_not(node: str, before: NodeInfo | None, now: NodeInfo | None) -> str:
    if now is None:
        return f"node {node} is gone"
    if before is not None and before is not now and _what_decides(before) != _what_decides(now):
        return f"node {node} has changed since it was chosen"
    return ""


def _what_decides(node: NodeInfo) -> tuple[object, ...]:
    return node.allocatable, node.labels, node.taints, node.unschedulable
