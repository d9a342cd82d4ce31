"""What nodes have besides labels, by row: taints, container images, features of the kubelet, and ports that pods have
taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.predicted.array_rows import grown
from kube.objects.constraints import HostPort
from kube.objects.objects import NodeImage, NodeInfo, PodInfo, Taint

_EVERY_ADDRESS: Final = "0.0.0.0"


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


class NodeFeatures:
    """One column per feature that a node has declared."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._columns: dict[str, Bools] = {}
        self._of: dict[int, frozenset[str]] = {}

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
        self._n_rows = max(self._n_rows, row + 1)
        before = self._of.pop(row, frozenset())
        now = frozenset() if node is None else node.features
        if now:
            self._of[row] = now
        for name in before ^ now:
            column = grown(self._columns.get(name, np.zeros(0, dtype=bool)), row + 1)
            column[row] = name in now
            self._columns[name] = column

    def declaring(self, names: Iterable[str]) -> Bools:
        """(n_rows,) nodes that declare all of these features."""
        nodes = np.ones(self._n_rows, dtype=bool)
        for name in names:
            nodes &= grown(self._columns.get(name, np.zeros(0, dtype=bool)), self._n_rows)[: self._n_rows]
        return nodes


class HostPorts:
    """By protocol and port, then by address: how many pods on which rows.

    Unlike upstream's set of ports per node, a port that two pods share on a node (one was bound there by hand) stays
    taken until both are gone.
    """

    def __init__(self) -> None:
        self._pods: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        for wanted in pod.host_ports:
            port = (wanted.protocol, wanted.port)
            by_address = self._pods.setdefault(port, {})
            pods = by_address.setdefault(wanted.ip, {})
            left = pods.get(row, 0) + sign
            if left:
                pods[row] = left
                continue
            del pods[row]
            if not pods:
                del by_address[wanted.ip]
                if not by_address:
                    del self._pods[port]

    def taken(self, wanted: Iterable[HostPort], n_rows: int) -> Bools:
        """(n_rows,) nodes where one of these is in use.

        The rule of HostPortInfo.CheckConflict (staging/src/k8s.io/kube-scheduler/framework/types.go): the same protocol
        and port conflict if the addresses are equal or either is every address.
        """
        nodes = np.zeros(n_rows, dtype=bool)
        for port in wanted:
            by_address = self._pods.get((port.protocol, port.port), {})
            for address, pods in by_address.items():
                if address == port.ip or _EVERY_ADDRESS in (address, port.ip):
                    nodes[np.fromiter(pods, dtype=np.int64, count=len(pods))] = True
        return nodes


class NodeTaints:
    """By row. All that is public is to be read only, valid until the next change.

    sets : the distinct sets of taints by number, each in the order of a node; number 0 is no taints. A number that no
           node has any more stands for no taints, too, until it is given to another set
    """

    def __init__(self) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        self._number_of: dict[tuple[Taint, ...], int] = {(): 0}
        self._nodes_with: list[int] = [0]
        self._free: list[int] = []
        self._n_rows = 0
        self._set_of = np.zeros(0, dtype=np.int64)
        self._unschedulable = np.zeros(0, dtype=bool)

    @property
    def set_of(self) -> Ints:
        """(n_rows,) number of each node's set."""
        return self._set_of[: self._n_rows]

    @property
    def unschedulable(self) -> Bools:
        """(n_rows,) nodes with spec.unschedulable: cordoned, whether the taint that follows is there yet or not."""
        return self._unschedulable[: self._n_rows]

    def node_changed(self, row: int, node: NodeInfo | None) -> None:
        """The node of a row came, changed or went."""
        if row >= self._n_rows:
            self._set_of, self._unschedulable = grown(self._set_of, row + 1), grown(self._unschedulable, row + 1)
            self._n_rows = row + 1
        self._unschedulable[row] = node is not None and node.unschedulable
        taints = () if node is None else node.taints
        before = int(self._set_of[row])
        if self.sets[before] == taints:
            return
        self._set_of[row] = self._take(taints)
        if before:
            self._release(before)

    def _take(self, taints: tuple[Taint, ...]) -> int:
        number = self._number_of.get(taints)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.sets[number] = taints
            else:
                number = len(self.sets)
                self.sets.append(taints)
                self._nodes_with.append(0)
            self._number_of[taints] = number
        self._nodes_with[number] += 1
        return number

    def _release(self, number: int) -> None:
        self._nodes_with[number] -= 1
        if not self._nodes_with[number]:
            del self._number_of[self.sets[number]]
            self.sets[number] = ()
            self._free.append(number)
