"""Taints of nodes, one number per distinct set of taints: a pod's tolerations are held against each set once."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Ints
from cluster.predicted.growing_arrays import grown
from kube.objects.objects import NodeInfo, Taint


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
