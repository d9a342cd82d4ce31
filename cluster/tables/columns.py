"""One row per node: what it has, and what its pods request. Arrays that grow; rows that are used again.

Requests are summed as whole numbers, in the units and with the rounding of kube-scheduler's own node sums (milli-cores,
bytes, counts, rounded up; pkg/scheduler/framework/types.go): adding and removing a pod leaves exactly what was there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from base.arrays import Bools, Floats, Ints
from kube.objects.objects import NodeInfo, PodInfo

NODE_KINDS: Final = ("cpu", "memory", "pods", "ephemeral-storage")
"""Resource names every table begins with; extended ones (nvidia.com/gpu) follow as they appear."""

_PODS: Final = NODE_KINDS.index("pods")

_NONZERO_SCALE: Final = np.array([1000.0, 1.0])

_MOST_UNITS = 10**15  # per pod: a petabyte, or a million million cores
MOST_SUM: Final = 2**62  # of a column: differences of two fit into 64 bits; what is beyond it is kept apart

Scalar = TypeVar("Scalar", bound=np.generic)


def per_unit(kind: str) -> float:
    """How many whole units one core, byte or device is counted as."""
    return 1000.0 if kind == "cpu" else 1.0


def whole_units(kind: str, amount: float) -> int:
    """An amount in whole units, rounded up; at most 2^62 of either sign, so that differences fit into 64 bits."""
    # Rounded first: 0.57 cores are 570 milli-cores, not 571 because the float is a little more.
    return max(min(math.ceil(round(amount * per_unit(kind), 6)), 2**62), -(2**62))


@lru_cache(maxsize=16384)  # every event of a hundred thousand pods asks, and pods of a service ask the same
def request_units(kind: str, amount: float) -> int:
    """A request in whole units, rounded up, as far as sums of them stay exact."""
    return min(whole_units(kind, amount), _MOST_UNITS)


def nonzero_units(pod: PodInfo) -> tuple[int, int]:
    """Its non-zero requests in milli-cores and bytes."""
    return request_units("cpu", pod.nonzero_requests[0]), request_units("memory", pod.nonzero_requests[1])


class NodeColumns:
    """The tables. Rows of nodes that went are free, their name is '', all else in them 0, until used again.

    What a node does not state is 0, as if it had none. A row stays while a Node object or a pod is there. Columns are
    of resources that some node has named: what only pods name is kept apart, since anybody names what he likes, and
    each column costs memory for every node.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.nodes: list[NodeInfo | None] = []
        self.kinds: dict[str, int] = {kind: column for column, kind in enumerate(NODE_KINDS)}
        self._free: list[int] = []
        self._without_column: dict[str, dict[int, int]] = {}  # units by row, of resources that no node has named yet
        self._scale: list[float] = [per_unit(kind) for kind in NODE_KINDS]
        n_rows, n_kinds = 64, 8
        self._alive = np.zeros(n_rows, dtype=bool)
        self._capacity = np.zeros((n_rows, n_kinds))
        self._allocatable = np.zeros((n_rows, n_kinds))
        self._requested = np.zeros((n_rows, n_kinds))
        self._units = np.zeros((n_rows, n_kinds), dtype=np.int64)
        self._allocatable_units = np.zeros((n_rows, n_kinds), dtype=np.int64)
        self._nonzero = np.zeros((n_rows, 2))
        self._nonzero_units = np.zeros((n_rows, 2), dtype=np.int64)
        self._beyond: dict[tuple[str, int, int], int] = {}  # sums beyond MOST_SUM, by table, row and column
        self._pod_count = np.zeros(n_rows, dtype=np.int64)
        self._qos_pods = np.zeros((n_rows, 3), dtype=np.int64)
        self.version = 0  # of all rows together
        self._version_of = np.zeros(n_rows, dtype=np.int64)  # when what a node has or is requested of it changed last

    @property
    def n_rows(self) -> int:
        """Rows, free ones included."""
        return len(self.names)

    @property
    def alive(self) -> Bools:
        """(n_rows,) a Node object exists."""
        return _read_only(self._alive[: self.n_rows])

    @property
    def capacity(self) -> Floats:
        """(n_rows, n_kinds) cores, bytes, counts."""
        return _read_only(self._capacity[: self.n_rows, : len(self.kinds)])

    @property
    def allocatable(self) -> Floats:
        """(n_rows, n_kinds) cores, bytes, counts."""
        return _read_only(self._allocatable[: self.n_rows, : len(self.kinds)])

    @property
    def requested(self) -> Floats:
        """(n_rows, n_kinds) by the pods there; `pods` is their number."""
        return _read_only(self._requested[: self.n_rows, : len(self.kinds)])

    @property
    def allocatable_units(self) -> Ints:
        """(n_rows, n_kinds) in whole units, rounded up: milli-cores, bytes, counts."""
        return _read_only(self._allocatable_units[: self.n_rows, : len(self.kinds)])

    @property
    def requested_units(self) -> Ints:
        """(n_rows, n_kinds) by the pods there, in the same units; `pods` is not kept here (see `pod_count`)."""
        return _read_only(self._units[: self.n_rows, : len(self.kinds)])

    @property
    def requested_nonzero(self) -> Floats:
        """(n_rows, 2) cores and bytes, containers without a request counted with a default."""
        return _read_only(self._nonzero[: self.n_rows])

    @property
    def pod_count(self) -> Ints:
        """(n_rows,)"""
        return _read_only(self._pod_count[: self.n_rows])

    @property
    def qos_pods(self) -> Ints:
        """(n_rows, 3) pods by QoS class."""
        return _read_only(self._qos_pods[: self.n_rows])

    def changed_since(self, version: int) -> Ints:
        """Rows of which anything but names has changed since `version` was this."""
        return np.flatnonzero(self._version_of[: self.n_rows] > version)

    def request_vector(self, pod: PodInfo) -> Floats:
        """(n_kinds,) what a pod adds to `requested`; resources that no node has named are left out."""
        requests = np.zeros(len(self.kinds))
        for kind, amount in pod.requests.items():
            column = self.kinds.get(kind)
            if column is not None:
                requests[column] = request_units(kind, amount) / self._scale[column]
        requests[_PODS] = 1.0
        return requests

    def take_row(self, name: str) -> tuple[int, bool]:
        """The row of a node, and whether it is new."""
        row = self.row_of.get(name)
        if row is not None:
            return row, False
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == len(self._alive):
                self._grow_rows()
            self.names.append(name)
            self.nodes.append(None)
        self.row_of[name] = row
        return row, True

    def free_if_unused(self, row: int) -> bool:
        """Give the row up if neither a Node object nor a pod is left; whether that is so."""
        if self._alive[row] or self._pod_count[row]:
            return False
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self._free.append(row)
        return True

    def set_node(self, row: int, node: NodeInfo | None) -> None:
        """What the Node object says; None = it is gone."""
        self._changed(row)
        self.nodes[row] = node
        self._alive[row] = node is not None
        columns = [self._column(kind) for kind in (*node.capacity, *node.allocatable)] if node else []
        self._capacity[row] = 0.0
        self._allocatable[row] = 0.0
        self._allocatable_units[row] = 0
        if node:
            n_capacity = len(node.capacity)
            self._capacity[row, columns[:n_capacity]] = list(node.capacity.values())
            self._allocatable[row, columns[n_capacity:]] = list(node.allocatable.values())
            self._allocatable_units[row, columns[n_capacity:]] = [
                whole_units(kind, amount) for kind, amount in node.allocatable.items()
            ]

    def add_pod(self, row: int, pod: PodInfo) -> None:
        """Count a pod that sits on the node."""
        self._count(row, pod, 1)

    def remove_pod(self, row: int, pod: PodInfo) -> None:
        """Undo `add_pod` of the very same pod."""
        self._count(row, pod, -1)

    def add_pods(self, rows: Ints, pod: PodInfo) -> None:
        """Count one such pod on the node of each row; a row may be named more than once."""
        largest = max([*(request_units(*one) for one in pod.requests.items()), *nonzero_units(pod)])
        if self._beyond or len(rows) * largest > MOST_SUM // 2:
            for row in rows.tolist():
                self._count(row, pod, 1)
            return
        at, pods = np.unique(rows, return_counts=True)
        # As one by one: of a row that is named twice the later number stays.
        self._version_of[rows] = self.version + 1 + np.arange(len(rows))
        self.version += len(rows)
        for kind, amount in pod.requests.items():
            units, column = request_units(kind, amount), self.kinds.get(kind)
            if column is None:
                for row, n in zip(at.tolist(), pods.tolist(), strict=True):
                    self._count_apart(kind, row, n * units)
                continue
            self._units[at, column] += pods * units
            self._requested[at, column] = self._units[at, column] / self._scale[column]
        self._nonzero_units[at] += pods[:, None] * np.array(nonzero_units(pod), dtype=np.int64)
        self._nonzero[at] = self._nonzero_units[at] / _NONZERO_SCALE
        self._pod_count[at] += pods
        self._requested[at, _PODS] = self._pod_count[at]
        self._qos_pods[at, pod.qos] += pods

    def _changed(self, row: int) -> None:
        self.version += 1
        self._version_of[row] = self.version

    def _count(self, row: int, pod: PodInfo, sign: int) -> None:
        self._changed(row)
        for kind, amount in pod.requests.items():
            column = self.kinds.get(kind)
            if column is None:
                self._count_apart(kind, row, sign * request_units(kind, amount))
                continue
            units = self._add("_units", row, column, sign * request_units(kind, amount))
            self._requested[row, column] = units / self._scale[column]
        for column, amount in enumerate(nonzero_units(pod)):
            self._add("_nonzero_units", row, column, sign * amount)
        self._nonzero[row, 0] = self._nonzero_units[row, 0] / 1000.0
        self._nonzero[row, 1] = self._nonzero_units[row, 1]
        self._pod_count[row] += sign
        self._requested[row, _PODS] = self._pod_count[row]
        self._qos_pods[row, pod.qos] += sign

    def _count_apart(self, kind: str, row: int, units: int) -> None:
        """Count a resource that no node has named."""
        if not units:
            return
        of_row = self._without_column.setdefault(kind, {})
        of_row[row] = of_row.get(row, 0) + units
        if not of_row[row]:
            del of_row[row]
        if not of_row:
            del self._without_column[kind]

    def _add(self, table: str, row: int, column: int, units: int) -> int:
        """Add to a sum of whole units and return it. Ten thousand absurd pods do not overflow it, nor leave a trace."""
        sums: Ints = getattr(self, table)
        total = self._beyond.pop((table, row, column), int(sums[row, column])) + units
        if total > MOST_SUM:
            self._beyond[table, row, column] = total
        sums[row, column] = min(total, MOST_SUM)
        return min(total, MOST_SUM)

    def _column(self, kind: str) -> int:
        """Return the column of a resource that a node names."""
        column = self.kinds.get(kind)
        if column is None:
            column = self.kinds[kind] = len(self.kinds)
            self._scale.append(per_unit(kind))
            if column == self._capacity.shape[1]:
                for table in ("_capacity", "_allocatable", "_requested", "_units", "_allocatable_units"):
                    setattr(self, table, _doubled(getattr(self, table), axis=1))
            for row, units in self._without_column.pop(kind, {}).items():
                self._requested[row, column] = self._add("_units", row, column, units) / self._scale[column]
        return column

    def _grow_rows(self) -> None:
        for table in (
            "_alive",
            "_capacity",
            "_allocatable",
            "_requested",
            "_units",
            "_allocatable_units",
            "_nonzero",
            "_nonzero_units",
            "_pod_count",
            "_qos_pods",
            "_version_of",
        ):
            setattr(self, table, _doubled(getattr(self, table), axis=0))


def _doubled(table: NDArray[Scalar], *, axis: int) -> NDArray[Scalar]:
    return np.concatenate([table, np.zeros_like(table)], axis=axis)


def _read_only(view: NDArray[Scalar]) -> NDArray[Scalar]:
    view.flags.writeable = False
    return view
