"""Filter MachineGroup: machines kept for the pods that name them, pods that go nowhere else, and how much of a group
may still be lent.

Node label `forecast-scheduler.io/machine-group: batch` makes a node one of the group; pods name groups in the
annotation of the same name, several separated by commas. Unlike a taint with a toleration it works both ways.

Groups may have owners, and lend what these leave idle (docs/use/node-rules.md).

    pods that may still borrow = min over what a pod requests of  (free - keep_free * all) // wanted

all and free are sums over the nodes of the group: devices in thousandths (if devices are counted), CPU, memory and
every other resource that the pod requests. What is free on a node that takes no pods is no use to the owners and does
not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.cluster_events import NODE_EVENTS, ROOM_EVENTS, ClusterEvent, EventKind, Hint, is_another_node
from placement.devices.device_demand import WHOLE, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_annotations import MACHINE_GROUP, comes_with_node
from placement.filters.rejections import found
from placement.index.node_labels import LabelColumn
from placement.machine_groups.membership import GroupStanding, Membership, asks_to_borrow
from placement.node_rule_settings import MachineGroupOptions

ENDLESS = 2**31 - 1

_ROUNDING = 1e-6
"""A tenth of 30 is a little more than 3 in floats."""

_REASONS: Final = {
    GroupStanding.RESERVED: "node(s) belonged to a machine group that the pod does not name",
    GroupStanding.NOT_OWNER: "node(s) belonged to a machine group that the pod names and is not an owner of",
    GroupStanding.TOO_IMPORTANT: "node(s) belonged to a machine group that lends only to pods of a lower priority",
    GroupStanding.ELSEWHERE: "node(s) belonged to no machine group, the pod names one",
}
_KEPT: Final = "node(s) belonged to a machine group that keeps what it has left for its owners"


def pods_within(keep_free: float, *, total: int, free: int, wanted: int) -> int:
    """Pods of one resource, in any unit, until less than the share `keep_free` of all of it is free; wanted: of each,
    more than 0."""
    return max(0, free - math.ceil(keep_free * total - _ROUNDING)) // wanted


def may_still_borrow(pod: PodInfo, group: MachineGroupOptions, view: ClusterView) -> int:
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


class MachineGroup(PlainFilter):
    """Unresolvable. An empty label, or an empty annotation, is none. Pods of a DaemonSet pass.

    No pod has to go for a pod that borrows: it takes what is left over. Owners are not rejected here because of pods
    that borrowed; whether there is room is for other filters to say, and preemption makes some.
    """

    name = "MachineGroup"
    woken_by = ROOM_EVENTS | {EventKind.FORECAST_CHANGED, EventKind.POD_BOUND}

    def __init__(
        self, membership: Membership | None = None, *, is_wanted: Callable[[str], bool] = lambda group: False
    ) -> None:
        """
        membership : rules of groups; None = any pod may name any group
        is_wanted  : whether owners wait for machines of a group, which lends nothing then (GroupUse)
        """
        self.membership, self._is_wanted = membership or Membership(()), is_wanted

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct group."""
        standing = self._standing(pod, view)
        if standing is None:
            return ()
        rejections = _outside(standing, view)
        if (standing == GroupStanding.BORROWED).any():
            column = view.index.labels.column(MACHINE_GROUP)
            rejections += found(self._kept(pod, standing, column, view), view, _KEPT, preemptible=False)
        return rejections

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Rejections that hold however many machines the groups have free: the pod is no member there."""
        standing = self._standing(pod, view)
        return () if standing is None else _outside(standing, view)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod that borrows gets what others leave, once the owners have what they wait for."""
        return Hint.of(asks_to_borrow(pod) or (event.kind in NODE_EVENTS and is_another_node(event)))

    def lasting_key(self, pod: PodInfo) -> Hashable:
        of = self.membership
        borrows = asks_to_borrow(pod) and pod.priority
        return comes_with_node(pod), of.named_by(pod), of.owned_by(pod), borrows

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether pods like it that land change nothing: what is kept free is that of a group, not of a node."""
        return not asks_to_borrow(pod) or not any(group.keep_free for group in self.membership.lenders)

    def _standing(self, pod: PodInfo, view: ClusterView) -> Ints | None:
        """(n_rows,) Standing of the pod on each node; None = no group matters to it."""
        column = view.index.labels.column(MACHINE_GROUP)
        if comes_with_node(pod) or not (column.names or self.membership.named_by(pod)):
            return None
        return self.membership.standing(pod, column)

    def _kept(self, pod: PodInfo, standing: Ints, column: LabelColumn, view: ClusterView) -> Bools:
        """(n_rows,) nodes of groups that lend no more to pods like it."""
        kept = np.zeros(view.n_rows, dtype=bool)
        borrowed = standing == GroupStanding.BORROWED
        for group in self.membership.lenders:
            of_group = borrowed & (column.values == column.number_of.get(group.name, len(column.names)))
            if of_group.any() and (self._is_wanted(group.name) or not may_still_borrow(pod, group, view)):
                kept |= of_group
        return kept


def _outside(standing: Ints, view: ClusterView) -> list[Rejection]:
    """Of nodes where the pod is no member of the group."""
    rejections: list[Rejection] = []
    for one, reason in _REASONS.items():
        rejections += found(np.asarray(standing == one), view, reason, preemptible=False)
    return rejections
