"""Nodes with cards and NUMA zones, tables that follow them, and pods in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cluster.assuming_cluster import AssumingCluster
from cluster.tables.columns import whole_units
from kube.objects.objects import ContainerRequests, PodInfo, QosClass
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.node_rule_settings import TopologyOptions
from placement.topology.node_zones import CardLayout, CpuManager, NodeZones, NumaZone, Scope, TopologyManagerPolicy
from placement.topology.zone_table import ZoneTable
from scorer.options import ScorerOptions
from tests.placement.devices.device_world import GPU, card_node
from tests.placement.small_cluster import pod_of

NOW = 1_795_370_000.0


def zones(
    node: str,
    *available: Mapping[str, float],
    policy: TopologyManagerPolicy = TopologyManagerPolicy.SINGLE_NUMA_NODE,
    scope: Scope = Scope.POD,
    layout: CardLayout | None = None,
    costs: Mapping[int, Mapping[int, int]] | None = None,
    total: Mapping[str, float] | None = None,
    cpus: CpuManager | None = None,
    sockets: Sequence[str] = (),
) -> NodeZones:
    """available: of each zone, in base units; total: of each of the empty node. Cards are numbered in their order,
    unless `layout` says otherwise."""

    def units(amounts: Mapping[str, float]) -> dict[str, int]:
        return {kind: whole_units(kind, amount) for kind, amount in amounts.items()}

    made = tuple(
        NumaZone(
            number,
            units(one),
            (costs or {}).get(number, {}),
            units(one if total is None else total),
            sockets[number] if sockets else "",
        )
        for number, one in enumerate(available)
    )
    groups: list[tuple[int, ...]] = []
    for one in available:
        start = sum(map(len, groups))
        groups.append(tuple(range(start, start + int(one.get(GPU, 0)))))
    if layout is None:
        layout = CardLayout(numa=tuple(groups), zones=tuple(range(len(groups)))) if any(groups) else CardLayout()
    return NodeZones(node, policy, scope, made, layout, cpus or CpuManager())


def pod(
    name: str,
    node: str = "",
    *,
    cpu: float = 0.0,
    n: int = 0,
    qos: QosClass = QosClass.GUARANTEED,
    containers: Sequence[Mapping[str, float]] = (),
    starting: Sequence[Mapping[str, float]] = (),
    started: float | None = None,
    **changes: Any,
) -> PodInfo:
    """containers, starting: instead of cpu and n, what each requests."""
    requests: dict[str, float] = {"cpu": cpu, GPU: float(n)}
    for one in containers:
        for kind, amount in one.items():
            requests[kind] = requests.get(kind, 0.0) + amount
    for one in starting:
        for kind, amount in one.items():
            requests[kind] = max(requests.get(kind, 0.0), amount)
    made = replace(
        pod_of(name, node=node),
        requests={kind: amount for kind, amount in requests.items() if amount},
        qos=qos,
        started=started,
        containers=ContainerRequests(tuple(starting), tuple(containers)) if containers else None,
    )
    return replace(made, **changes)


class World:
    """The tables, under nobody's lock. now: unix seconds, may be set."""

    def __init__(
        self, nodes: Mapping[str, int], pods: Iterable[PodInfo] = (), options: TopologyOptions | None = None
    ) -> None:
        """nodes: cards by name."""
        self.now = NOW
        self.options = options or TopologyOptions()
        self.cluster = AssumingCluster(ScorerOptions(), now=NOW)
        for name, n in nodes.items():
            self.cluster.put(card_node(name, n))
        self.put(*pods)
        self.state = self.cluster.state
        index = PlacementIndex(self.state)
        self.zones = self.new_zones()
        self.devices = DeviceTable(self.state, is_assumed=self.cluster.assumed.__contains__, clock=lambda: self.now)
        self.view = ClusterView(self.cluster, index, (self.zones, self.devices))
        self.cluster.listeners += [index.apply, self.zones.apply, self.devices.apply]

    def new_zones(self) -> ZoneTable:
        """One that starts from what is there."""
        return ZoneTable(self.state, self.options, clock=lambda: self.now)

    def publish(self, *objects: NodeZones) -> None:
        """The watch says so."""
        for one in objects:
            self.zones.news.put(one)
        self.zones.catch_up()

    def put(self, *pods: PodInfo) -> None:
        """The watch says so."""
        for one in pods:
            self.cluster.put(one)

    def assume(self, one: PodInfo, node: str) -> None:
        """Place a pod."""
        self.put(one)
        self.cluster.assume(one, node, until=self.now + 1e6)

    def left(self, node: str, kind: str = GPU, *, expected: bool = False) -> list[int]:
        """Whole units by zone."""
        row = self.state.row_of[node]
        left = self.zones.left(np.array([row]), expected=expected)
        return [int(one) for one in left.units[0, left.there[0], left.kinds[kind]]]
