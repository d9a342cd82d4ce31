"""Pods that sit, grouped by namespace and labels and by controller: how many of each group are on each node.

Selectors see namespace and labels only, so they are held against groups, of which there are as many as services (more
where each pod has a label of its own). A cell is a group on a node: pods there, and how many of them terminate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.predicted.array_rows import grown
from kube.objects.constraints import LabelSelector, PodAffinityTerm
from kube.objects.objects import PodInfo
from placement.index.domain_sums import NO_PODS, PodsByRow, pods_by_row
from placement.index.group_labels import GroupLabels
from placement.index.namespaces import Namespaces

_KINDS: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""Controllers whose selectors are looked up (DefaultSelector in pkg/scheduler/framework/plugins/helper/spread.go)."""

_FEW: Final = 256
"""Number of groups up to which cells are collected group by group; for more, by one pass over all cells."""

_Labels = frozenset[tuple[str, str]]


def is_spread_by_default(pod: PodInfo) -> bool:
    """Whether a pod without spread constraints of its own has those of the scheduler."""
    return bool(pod.owner_uid) and pod.owner.kind in _KINDS


class OwnedPods:
    """By UID of the controller and row; pods that terminate do not count."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        """Controllers that have pods."""
        return len(self._pods)

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        if pod.terminating or not is_spread_by_default(pod):
            return
        by_row = self._pods.setdefault(pod.owner_uid, {})
        n_pods = by_row.get(row, 0) + sign
        if n_pods:
            by_row[row] = n_pods
        else:
            del by_row[row]
            if not by_row:
                del self._pods[pod.owner_uid]

    def count_all(self, rows: Sequence[int], pod: PodInfo) -> None:
        """Such a pod sits on the node of each row from now on."""
        if pod.terminating or not is_spread_by_default(pod):
            return
        by_row = self._pods.setdefault(pod.owner_uid, {})
        for row in rows:
            by_row[row] = by_row.get(row, 0) + 1

    def pods_of(self, owner_uid: str) -> PodsByRow:
        """Pods of one controller."""
        by_row = self._pods.get(owner_uid)
        return NO_PODS if by_row is None else pods_by_row(by_row)


@dataclass(slots=True)
class _Group:
    number: int
    key: tuple[str, _Labels]
    cells: dict[int, int] = field(default_factory=dict)  # row -> cell


class PodGroups:
    """Groups by number.

    owned : the same pods by their controllers
    """

    def __init__(self) -> None:
        self.owned = OwnedPods()
        self._labels = GroupLabels()
        self._group_of: dict[tuple[str, _Labels], _Group] = {}
        self._groups: list[_Group | None] = []
        self._free_groups: list[int] = []
        # By cell: group, row of the node, pods, and of these the ones that terminate. A free cell has no pods.
        self._group, self._row = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
        self._pods, self._leaving = np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64)
        self._n_cells = 0
        self._free_cells: list[int] = []

    def __len__(self) -> int:
        """Groups that have pods."""
        return len(self._group_of)

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        key = (pod.namespace, frozenset(pod.labels.items()))
        group = self._group_of.get(key)
        if group is None:
            group = self._new_group(key, pod)
        cell = group.cells.get(row)
        if cell is None:
            cell = group.cells[row] = self._new_cell(group.number, row)
        n_pods = int(self._pods[cell]) + sign
        self._pods[cell] = n_pods
        if pod.terminating:
            self._leaving[cell] += sign
        if not n_pods:
            self._free_cells.append(cell)
            del group.cells[row]
            if not group.cells:
                self._drop_group(group)
        self.owned.count(row, pod, sign)

    def count_all(self, rows: Sequence[int], pod: PodInfo) -> None:
        """Such a pod sits on the node of each row from now on; a row may be named more than once."""
        key = (pod.namespace, frozenset(pod.labels.items()))
        group = self._group_of.get(key) or self._new_group(key, pod)
        cells = group.cells
        for row in rows:
            if row not in cells:
                cells[row] = self._new_cell(group.number, row)
        counted = np.fromiter(map(cells.__getitem__, rows), dtype=np.int64, count=len(rows))
        np.add.at(self._pods, counted, 1)
        if pod.terminating:
            np.add.at(self._leaving, counted, 1)
        self.owned.count_all(rows, pod)

    def meant_by(self, term: PodAffinityTerm, namespaces: Namespaces) -> Ints:
        """Numbers of the groups that an affinity term means, ascending."""
        if term.namespace_selector is None:
            where = self._labels.in_namespaces(term.namespaces)
        else:
            where = self._labels.in_accepted_namespaces(lambda namespace: namespaces.meant_by(term, namespace))
        return self._labels.matching(term.selector, where)

    def chosen_by(self, selector: LabelSelector | None, namespace: str) -> Ints:
        """Numbers of the groups of a namespace that a selector chooses, ascending."""
        return self._labels.matching(selector, self._labels.in_namespaces((namespace,)))

    def pods_of(self, groups: Ints, *, leaving: bool = True) -> PodsByRow:
        """Pods of groups by row. leaving: those that terminate count, too."""
        if len(groups) <= _FEW:
            found = [cell for number in groups.tolist() for cell in self._cells_of(number)]
            cells = np.array(found, dtype=np.int64)
            return PodsByRow(self._row[cells], self._pods[cells] - (0 if leaving else self._leaving[cells]))
        chosen = np.zeros(len(self._groups), dtype=bool)
        chosen[groups] = True
        n = self._n_cells
        pods = self._pods[:n] if leaving else self._pods[:n] - self._leaving[:n]
        # Sums of floats are exact below 2**53.
        totals = np.bincount(self._row[:n], weights=pods * chosen[self._group[:n]]).astype(np.int64)
        rows = np.flatnonzero(totals)
        return PodsByRow(rows, totals[rows])

    def _cells_of(self, number: int) -> list[int]:
        group = self._groups[number]
        return [] if group is None else list(group.cells.values())

    def _new_group(self, key: tuple[str, _Labels], pod: PodInfo) -> _Group:
        if self._free_groups:
            number = self._free_groups.pop()
        else:
            number = len(self._groups)
            self._groups.append(None)
        group = self._groups[number] = self._group_of[key] = _Group(number, key)
        self._labels.put(number, pod.namespace, pod.labels)
        return group

    def _drop_group(self, group: _Group) -> None:
        del self._group_of[group.key]
        self._groups[group.number] = None
        self._free_groups.append(group.number)
        self._labels.drop(group.number)

    def _new_cell(self, group: int, row: int) -> int:
        if self._free_cells:
            cell = self._free_cells.pop()
        else:
            cell = self._n_cells
            self._n_cells += 1
            if cell == len(self._group):
                self._group, self._row, self._pods, self._leaving = (
                    grown(table, cell + 1) for table in (self._group, self._row, self._pods, self._leaving)
                )
        self._group[cell], self._row[cell] = group, row
        return cell
