"""What it costs to land pods of a shape on each node, kept per shape: only nodes that changed are judged anew.

A pod that lands changes one node, and there are some hundred shapes: judging all nodes for every pod would find out
the same again and again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from base.arrays import Floats, Ints
from cluster.tables.state import ClusterState
from placement.devices.device_table import DeviceTable
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.pod_shapes import PodShape

_MIB: Final = 2.0**20
_MANY: Final = 64
"""Nodes from which looking for equal ones takes less time than judging all."""


class Judge(Protocol):
    """profiles.gpu.fragmentation.packing_cost.Packing, or another rule of one node and one shape."""

    def cost(self, shape: PodShape, nodes: NodeStates) -> tuple[Floats, Ints]:
        """(n_nodes,) lower is better, inf = it does not fit; (n_nodes,) device of a shared pod, -1 = none to be chosen.

        A node's answer depends on its own state only.
        """

    def following(self, nodes: NodeStates) -> Judge:
        """Itself, or another one where what the cluster has in all is another by much. nodes: all of them."""


@dataclass(slots=True)
class ShapeCosts:
    """Of one shape. cost, device: (n_rows,) as Judge says; version: of the devices, when they were last looked at."""

    cost: Floats
    device: Ints
    version: int


class CostTable:
    """Under the lock of the tables. most_shapes: those that were asked about last are kept."""

    def __init__(self, state: ClusterState, devices: DeviceTable, *, most_shapes: int = 512) -> None:
        self._state, self._devices, self._most = state, devices, most_shapes
        self._judge: Judge | None = None
        self._kept: OrderedDict[PodShape, ShapeCosts] = OrderedDict()

    def use(self, judge: Judge) -> None:
        """What is known is forgotten, unless it is the same judge."""
        if judge is not self._judge:
            self._judge = judge
            self._kept.clear()

    def of(self, shape: PodShape) -> ShapeCosts:
        """To be read only, and at once. A judge must be in use."""
        assert self._judge is not None
        known = self._kept.get(shape)
        n_rows, version = self._state.n_rows, self._devices.version
        rows: Ints | None = None
        if known is not None and len(known.cost) == n_rows:
            rows = self._devices.changed_since(known.version)
        if known is None or rows is None:
            cost, device = self._judged(self._judge, shape, np.arange(n_rows))
            known = ShapeCosts(np.array(cost), np.array(device), version)
        elif len(rows):
            known.cost[rows], known.device[rows] = self._judged(self._judge, shape, rows)
        known.version = version
        self._kept[shape] = known
        self._kept.move_to_end(shape)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return known

    def _judged(self, judge: Judge, shape: PodShape, rows: Ints) -> tuple[Floats, Ints]:
        """What the judge says of these rows; of many nodes it is asked once per state: most are idle, or alike."""
        nodes = states_of_rows(self._state, self._devices, rows)
        if len(rows) < _MANY:
            return judge.cost(shape, nodes)
        first, state = nodes.distinct()
        cost, device = judge.cost(shape, nodes.take(first))
        return cost[state], device[state]

    def device_before(self, shape: PodShape, row: int) -> int | None:
        """The card found for a pod that has just landed there, if nothing else has changed since it was judged;
        -1 = none is to be chosen; None = it has to be judged again."""
        known = self._kept.get(shape)
        if known is None or known.version < self._devices.version - 1 or row >= len(known.device):
            return None
        return int(known.device[row])


def states_of_rows(state: ClusterState, devices: DeviceTable, rows: Ints) -> NodeStates:
    """The nodes of these rows as they are now."""
    cpu, memory = state.kinds["cpu"], state.kinds["memory"]
    allocatable, requested = state.allocatable_units[rows], state.requested_units[rows]
    free_milli, model, n_devices = devices.cards_on(rows)
    return NodeStates(
        cpu_free=(allocatable[:, cpu] - requested[:, cpu]).astype(np.float64),
        memory_free=(allocatable[:, memory] - requested[:, memory]) / _MIB,
        free_milli=free_milli,
        model=model,
        cpu_total=allocatable[:, cpu].astype(np.float64),
        memory_total=allocatable[:, memory] / _MIB,
        n_devices=n_devices,
    )
