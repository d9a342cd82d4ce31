"""Taints of nodes, one number per distinct set of taints: a pod's tolerations are held against each set once."""

from __future__ import annotations

from scorer.cluster.objects import NodeInfo

__all__ = ["NodeTaints"]


class NodeTaints:
    """By row."""

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
