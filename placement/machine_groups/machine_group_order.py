"""NodePreference MachineGroupOrder, and all that a scheduler process needs of machine groups, made before the cluster
is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from base.arrays import Ints
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.filters.pod_annotations import MACHINE_GROUP, comes_with_node
from placement.machine_groups.borrowers import GroupCollector, GroupUse
from placement.machine_groups.machine_group import MachineGroup, may_still_borrow
from placement.machine_groups.membership import GroupStanding, Membership
from placement.node_rule_settings import MachineGroupOptions
from placement.plugins import NodePreference, Preferred


class MachineGroupOrder(NodePreference):
    """NodePreference: nodes of the pod's own groups, then those of no group, and borrowed ones last.

    It comes before preferences of other kinds: a card that suits better is no reason to borrow it.
    """

    name = "MachineGroupOrder"

    def __init__(self, membership: Membership) -> None:
        """membership: that of the filter."""
        self._membership = membership

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """Borrowed nodes for no more pods than the groups have left for others."""
        column = view.index.labels.column(MACHINE_GROUP)
        if not column.names or comes_with_node(pod):
            return Preferred(rows, n_pods)
        standing = self._membership.standing(pod, column)[rows]
        best = standing.min()
        rows = rows[standing == best]
        if best != GroupStanding.BORROWED:
            return Preferred(rows, n_pods)
        present = {column.names[number] for number in set(column.values[rows].tolist())}
        lenders = (group for group in self._membership.lenders if group.name in present)
        left = min((may_still_borrow(pod, group, view) for group in lenders), default=n_pods)
        return Preferred(rows, max(1, min(n_pods, left)))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common: namespace, labels that do not identify, annotations."""
        return None


@dataclass(frozen=True, slots=True)
class GroupPlugins:
    """
    use       : Follower
    filter    : for the pods of all profiles that share the nodes, in the place of the one of the policies
    order     : NodePreference, the first of all
    collector : of the metrics
    """

    use: GroupUse
    filter: MachineGroup
    order: MachineGroupOrder
    collector: GroupCollector


def group_plugins(
    state: ClusterState,
    groups: Sequence[MachineGroupOptions],
    devices: DeviceTable | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> GroupPlugins:
    """Under the lock of the tables. devices: None = cards are not counted; clock: unix seconds."""
    membership = Membership(groups)
    use = GroupUse(state, membership, devices, clock=clock)
    order = MachineGroupOrder(membership)
    return GroupPlugins(use, MachineGroup(membership, is_wanted=use.is_wanted), order, GroupCollector(use))
