"""Clusters with machine groups, and pods placed as the cycle places them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.catalogue import standard_filters
from placement.machine_groups.machine_group_order import group_plugins
from placement.node_rule_settings import MachineGroupOptions
from tests.placement.card_types.card_world import CardWorld
from tests.placement.devices.device_world import card_node, card_pod

KEY, BORROW = "forecast-scheduler.io/machine-group", "forecast-scheduler.io/borrow"


def group_node(name: str, group: str | None = None, *, n: int = 0, cpu: float = 64.0, **fields: Any) -> NodeInfo:
    """A node of a group with n cards."""
    node = card_node(name, n)
    amounts = {**node.allocatable, "cpu": cpu}
    labels = node.labels if group is None else {**node.labels, KEY: group}
    return replace(node, labels=labels, capacity=amounts, allocatable=amounts, **fields)


def of_team(
    name: str,
    team: str,
    groups: str | None = None,
    *,
    borrows: bool = False,
    n: int = 0,
    milli: int | None = None,
    cpu: float = 0.0,
    **fields: Any,
) -> PodInfo:
    """A pod in the namespace of a team, of the groups that it names."""
    said = ({} if groups is None else {KEY: groups}) | ({BORROW: "true"} if borrows else {})
    pod = card_pod(name, n=n, milli=milli, said=said)
    requests = {**pod.requests, **({"cpu": cpu} if cpu else {})}
    return replace(pod, namespace=team, uid=f"{team}/{name}", requests=requests, **fields)


class GroupWorld(CardWorld):
    """The same with the filter and the preference of groups."""

    def __init__(self, nodes: Iterable[NodeInfo], pods: Iterable[PodInfo] = (), *groups: MachineGroupOptions) -> None:
        super().__init__(nodes, pods)
        made = group_plugins(self.state, groups, self.table, clock=lambda: self.now)
        self.use, self.filter, self.order = made.use, made.filter, made.order
        self.cluster.listeners.append(self.use.apply)
        self.filters = (*standard_filters(), self.filter)
        self.preferences = (self.order,)
