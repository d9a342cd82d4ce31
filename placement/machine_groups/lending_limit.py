"""How much of a machine group may still be lent, so that the share that it keeps for its owners stays free.

    pods that may still borrow = min over what a pod requests of  (free - keep_free * all) // wanted

all and free are sums over the nodes of the group: devices in thousandths (if devices are counted), CPU, memory and
every other resource that the pod requests. What is free on a node that takes no pods is no use to the owners and does
not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from base.arrays import Bools
from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.devices.demand import WHOLE, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.annotations import MACHINE_GROUP
from placement.filters.filter import ClusterView
from placement.machine_groups.options import Group

ENDLESS = 2**31 - 1
_ROUNDING = 1e-6
"""A tenth of 30 is a little more than 3 in floats."""


def pods_within(keep_free: float, *, total: int, free: int, wanted: int) -> int:
    """Pods of one resource, in any unit, until less than the share `keep_free` of all of it is free; wanted: of each,
    more than 0."""
    return max(0, free - math.ceil(keep_free * total - _ROUNDING)) // wanted


def may_still_borrow(pod: PodInfo, group: Group, view: ClusterView) -> int:
    """Pods like it that the group lends to, one after the other, as far as all of its nodes together go."""
    if not group.keep_free:
        return ENDLESS
    column = view.index.labels.column(MACHINE_GROUP)
    number = column.number_of.get(group.name)
    if number is None:
        return ENDLESS
    nodes = np.asarray((column.values == number) & view.state.alive)
    return min(pods_within(group.keep_free, total=a, free=b, wanted=c) for a, b, c in _stocks(pod, nodes, view))


def _stocks(pod: PodInfo, nodes: Bools, view: ClusterView) -> Iterator[tuple[int, int, int]]:
    """All, free, and what the pod wants, of each resource on these nodes (n_rows,); at the end what stands for none."""
    state = view.state
    open_nodes = nodes & ~view.index.taints.unschedulable
    table = next((one for one in view.further if isinstance(one, DeviceTable)), None)
    demand = None if table is None else gpu_demand(pod, table.options)
    if table is not None and demand is not None:
        demand = table.typical_demand(demand)
        free = np.maximum(table.free_milli, 0)[open_nodes].sum()
        yield WHOLE * int(table.n_devices[nodes].sum()), int(free), demand.count * demand.milli
    for kind, amount in pod.requests.items():
        wanted, at = request_units(kind, amount), state.kinds.get(kind)
        if wanted > 0 and at is not None:
            left = (state.allocatable_units[:, at] - state.requested_units[:, at])[open_nodes]
            yield int(state.allocatable_units[nodes, at].sum()), int(np.maximum(left, 0).sum()), wanted
    yield 0, ENDLESS, 1  # a pod that requests nothing takes nothing away
