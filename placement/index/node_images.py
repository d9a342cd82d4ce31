"""Which node has which container image, for ImageLocality."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.objects.objects import NodeImage, NodeInfo


@dataclass(slots=True)
class ImageOnNodes:
    """One image name. rows: nodes that have it; size: in bytes, as said by the first of them that did."""

    size: int
    rows: set[int] = field(default_factory=set)


class NodeImages:
    """By image name, as backend/cache/cache.go (addNodeImageStates, removeNodeImageStates) keeps them.

    Nodes may disagree on the size of a name (architectures, tags that moved): as upstream the first to name it counts
    for all, until no node has it.
    """

    def __init__(self) -> None:
        self._named: dict[str, ImageOnNodes] = {}
        self._on: dict[int, tuple[NodeImage, ...]] = {}

    def find(self, name: str) -> ImageOnNodes | None:
        """An image by one of its full names; None = no node has it. To be read only."""
        return self._named.get(name)

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
        images = () if node is None else node.images
        before = self._on.get(row, ())
        if images == before:
            return
        for image in before:
            for name in image.names:
                self._remove(name, row)
        for image in images:
            for name in image.names:
                self._named.setdefault(name, ImageOnNodes(image.size)).rows.add(row)
        if images:
            self._on[row] = images
        else:
            del self._on[row]

    def _remove(self, name: str, row: int) -> None:
        image = self._named.get(name)
        if image is not None:  # else the node has the same name twice
            image.rows.discard(row)
            if not image.rows:
                del self._named[name]
