"""Which pods sat on which node when, as sparse matrices: the left-hand side of every regression here.

Built from the runs of pods with array operations only; several pods of a service on one node add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from base.arrays import AnyFloats, Bools, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import Placements

_TOGETHER = 0.9
"""Cosine between the pod counts of two services over nodes and times; random placement gives about 0.1."""


def pod_slots(placements: Placements) -> int:
    """Half hours of all pods together: an upper bound of the matrix's entries."""
    return int((placements.end - placements.first).sum())


def day_counts(placements: Placements, n_services: int, n_nodes: int, slots: Ints | None = None) -> sp.csr_matrix:
    """Pods of one day: (n_slots * n_nodes, n_slots * n_services), block-diagonal over slots, float32.

    placements : the runs of that day, counted from its midnight
    slots      : the slots of the day that count, ascending; None = all
    """
    slots = np.arange(SLOTS_PER_DAY) if slots is None else slots
    row, column, count = _entries(placements, slots, n_services, n_nodes)
    shape = (len(slots) * n_nodes, len(slots) * n_services)
    return sp.csr_matrix((count, (row, column)), shape=shape)


def sum_on_nodes(counts: sp.csr_matrix, usage: AnyFloats) -> Floats32:
    """Sum over the pods of each node, for counts of a whole day: (n_services, 48) -> (n_nodes, 48)."""
    summed: Floats32 = counts @ np.ascontiguousarray(usage.T, dtype=np.float32).ravel()
    return summed.reshape(SLOTS_PER_DAY, -1).T


def felt_beyond(counts: sp.csr_matrix, usage: AnyFloats, correction: AnyFloats, cost: AnyFloats) -> Floats32:
    """What nodes feel of their pods beyond what these are measured to use: (n_nodes, 48) of one day and resource.

    usage      : (n_services, 48) of one pod; NaN counts as nothing
    correction : (n_services,) node load / usage of a pod
    cost       : (48,) of every pod besides, measured or not
    """
    present = sum_on_nodes(counts, np.ones(usage.shape, dtype=np.float32))
    beyond = np.nan_to_num(usage) * (correction[:, None] - 1)
    return np.asarray(sum_on_nodes(counts, beyond) + present * cost)


def always_together(days: Sequence[Placements], n_services: int, n_nodes: int) -> Bools:
    """Find services whose pods sit with those of another one in nearly fixed numbers: (n_services,).

    Nodes show only their sum. An error from priors would not show it where one is much smaller than the other: it would
    leave the large one what a small prior leaves over. Compared at four times of each day.
    """
    moments = np.arange(4, SLOTS_PER_DAY, 12)
    rows, columns, counts = [], [], []
    for index, placements in enumerate(days):
        row, column, count = _entries(placements, moments, n_services, n_nodes)
        rows.append(index * len(moments) * n_nodes + row)
        columns.append(column % n_services)
        counts.append(count)
    shape = (len(days) * len(moments) * n_nodes, n_services)
    table = sp.csr_matrix((np.concatenate(counts), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    common = (table.T @ table).tocoo()
    length = np.sqrt(np.asarray(table.power(2).sum(axis=0)).ravel())
    alike = common.data > _TOGETHER * length[common.row] * length[common.col]
    together = np.zeros(n_services, dtype=np.bool_)
    together[common.row[alike & (common.row != common.col)]] = True
    return together


def _entries(placements: Placements, slots: Ints, n_services: int, n_nodes: int) -> tuple[Ints, Ints, Floats32]:
    """Row, column and value of each pod in each slot; duplicates are to be added up."""
    begin = np.searchsorted(slots, placements.first)
    length = np.searchsorted(slots, placements.end) - begin
    total = int(length.sum())
    offset = np.repeat(np.cumsum(length) - length, length)
    slot = np.repeat(begin, length) + np.arange(total) - offset
    row = slot * n_nodes + np.repeat(placements.node, length)
    column = slot * n_services + np.repeat(placements.service, length)
    return row, column, np.ones(total, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Composition:
    """Everything that adds to a node, one column each.

    matrix    : (n_days * n_slots * n_nodes, n_columns); rows ordered by day, slot, node. Columns: for each kind of day
                and slot the services (value: pods), then for each kind and slot the classes of nodes (value: size of
                the node), then the nodes themselves (value 1)
    kind      : (n_days,) index of each day's kind
    n_kinds, n_slots, n_services, n_classes, n_nodes : lengths of the axes
    """

    matrix: sp.csr_matrix
    kind: Ints
    n_kinds: int
    n_slots: int
    n_services: int
    n_classes: int
    n_nodes: int

    def curves(self, x: AnyFloats) -> AnyFloats:
        """The services' part of a column vector, as a view: (n_kinds, n_slots, n_services, n_resources)."""
        end = self.n_kinds * self.n_slots * self.n_services
        return x[:end].reshape(self.n_kinds, self.n_slots, self.n_services, -1)

    def base(self, x: AnyFloats) -> AnyFloats:
        """The node classes' part, as a view: (n_kinds, n_slots, n_classes, n_resources)."""
        begin = self.n_kinds * self.n_slots * self.n_services
        end = begin + self.n_kinds * self.n_slots * self.n_classes
        return x[begin:end].reshape(self.n_kinds, self.n_slots, self.n_classes, -1)

    def deviation(self, x: AnyFloats) -> AnyFloats:
        """The nodes' part, as a view: (n_nodes, n_resources)."""
        return x[len(x) - self.n_nodes :]


def compose(
    days: Sequence[Placements], kind: Ints, slots: Ints, n_services: int, node_class: Ints, node_size: AnyFloats
) -> Composition:
    """The matrix of some days.

    days       : runs of pods, a day each, counted from its midnight
    kind       : (n_days,) 0..n_kinds-1
    slots      : the slots of the day that count, ascending
    node_class : (n_nodes,) 0..n_classes-1
    node_size  : (n_nodes,) what a node's share of its class's base is proportional to
    """
    n_nodes, n_slots, n_kinds, n_classes = len(node_class), len(slots), int(kind.max()) + 1, int(node_class.max()) + 1
    first_base = n_kinds * n_slots * n_services
    first_node = first_base + n_kinds * n_slots * n_classes
    n_columns = first_node + n_nodes
    slot, node = np.divmod(np.arange(n_slots * n_nodes), n_nodes)
    own = np.ones(len(node), dtype=np.float32)
    data, columns, lengths = [], [], []
    for placements, k in zip(days, kind, strict=True):
        row, column, count = _entries(placements, slots, n_services, n_nodes)
        base = first_base + (k * n_slots + slot) * n_classes + node_class[node]
        of_day = sp.csr_matrix(
            (
                np.concatenate([count, node_size[node].astype(np.float32), own]),
                (
                    np.concatenate([row, np.arange(len(node)), np.arange(len(node))]),
                    np.concatenate([column + k * n_slots * n_services, base, first_node + node]),
                ),
            ),
            shape=(len(node), n_columns),
        )
        data.append(of_day.data)
        columns.append(of_day.indices.astype(np.int32, copy=False))
        lengths.append(np.diff(of_day.indptr))
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(lengths), dtype=np.int64)])
    matrix = sp.csr_matrix(
        (np.concatenate(data), np.concatenate(columns), pointers), shape=(len(kind) * len(node), n_columns)
    )
    return Composition(matrix, kind, n_kinds, n_slots, n_services, n_classes, n_nodes)
