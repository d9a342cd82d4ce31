"""Which node has which container image, for ImageLocality."""

from __future__ import annotations

from scorer.cluster.objects import NodeInfo

__all__ = ["NodeImages"]


class NodeImages:
    """By image name."""

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
