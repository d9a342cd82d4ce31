"""All that a scheduler process needs of machine groups, made before the cluster is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kube.tables.state import ClusterState
from placement.devices.device_table import DeviceTable
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import Membership
from placement.machine_groups.metrics import GroupCollector
from placement.machine_groups.options import Group
from placement.machine_groups.preference import MachineGroupOrder
from placement.machine_groups.use import GroupUse


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
    groups: Sequence[Group],
    devices: DeviceTable | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> GroupPlugins:
    """Under the lock of the tables. devices: None = nobody keeps account of cards; clock: unix seconds."""
    membership = Membership(groups)
    use = GroupUse(state, membership, devices, clock=clock)
    order = MachineGroupOrder(membership)
    return GroupPlugins(use, MachineGroup(membership, is_wanted=use.is_wanted), order, GroupCollector(use))
