"""The rules about nodes, in one place: which nodes a pod may go to and which come first, whatever places the pod;
with the plugins of topology.

    nodes, pods --> devices   which node has which cards, who has them     GpuDevices
                --> cards     types that pods name, and scarce ones        CardTypes
                --> groups    private machines, lent while idle            MachineGroup, MachineGroupOrder
    zones       --> topology  gangs close together, cards and CPUs of one  GangTopology, NodeResourceTopologyMatch,
                              zone, whole physical cores                   NearCards, WholeCores
    plans       --> reserved  nodes kept for pods that are moved           ReservedTargets
    Reservations -> room      room for pods still to come; our own loops   ReservedRoom
                              look for it themselves

They are made before the cluster is read, and exist whichever profiles run: every profile has the same filters and the
same order. What is of one profile only is not here: what a pod costs the cards, the tide, idle cores, claims.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubernetes.client import ApiClient

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import Follower
from cluster.tables.state import ClusterState
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import ResourceSource, source_of
from kube.objects.objects import PodInfo
from placement.card_types.card_types import CardPlugins, CardTypes, card_plugins
from placement.card_types.listed_cards import ListedCards
from placement.devices.device_table import DeviceTable
from placement.devices.gpu_devices import GpuDevices
from placement.filters.filter import ClusterView, Filter
from placement.filters.pod_annotations import MACHINE_GROUP
from placement.machine_groups.machine_group_order import GroupPlugins, group_plugins
from placement.node_rule_settings import NodeRuleOptions, TopologyOptions
from placement.plugins import NodePreference
from placement.pod_groups.pod_group import GangLookup
from placement.reservations.reserved_room import ReservedRoom
from placement.reservations.reserved_targets import ReservedTargets
from placement.topology.gang_domains import FiltersOf
from placement.topology.gang_topology import GangTopology
from placement.topology.near_cards import NearCards
from placement.topology.numa_filter import NodeResourceTopologyMatch
from placement.topology.whole_cores import WholeCores
from placement.topology.zone_decoding import node_resource_topologies
from placement.topology.zone_table import ZoneTable


@dataclass(frozen=True, slots=True)
class TopologyPlugins:
    """None = switched off.

    zones : Follower, to be attached before the device table and in `further` of the view; `zones.news` is the sink of
            decoding.node_resource_topologies, `zones.tick` for every second, `zones.on_room` for the queue
    gangs : Filter and NodePreference
    numa  : Filter
    cards : NodePreference to be asked after `gangs`; it is the device table's `choose`
    cores : NodePreference to be asked last
    """

    zones: ZoneTable | None
    gangs: GangTopology | None
    numa: NodeResourceTopologyMatch | None
    cards: NearCards | None
    cores: WholeCores | None

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Those that are on."""
        return tuple(one for one in (self.gangs, self.numa) if one is not None)

    @property
    def preferences(self) -> tuple[NodePreference, ...]:
        """Those that are on, in their order."""
        return tuple(one for one in (self.gangs, self.cards, self.cores) if one is not None)


def topology_plugins(
    state: ClusterState,
    devices: DeviceTable,
    gangs: GangLookup | None,
    filters_of: FiltersOf,
    options: TopologyOptions,
    *,
    clock: Callable[[], float] = time.time,
) -> TopologyPlugins:
    """Under the lock of the tables.

    gangs      : None = PodGroups are not heeded
    filters_of : all filters of a pod's profile; not asked before the first pod
    clock      : unix seconds
    """
    of_gangs = None if gangs is None or not options.gangs else GangTopology(gangs, devices, filters_of)
    if not options.node_topologies:
        return TopologyPlugins(None, of_gangs, None, None, None)
    zones = ZoneTable(state, options, clock=clock)
    cards = NearCards(zones, devices)
    devices.choosers.append(cards.choose)
    return TopologyPlugins(zones, of_gangs, NodeResourceTopologyMatch(zones), cards, WholeCores(zones))


@dataclass(slots=True)
class ProfileFilters:
    """All filters that a pod has to pass, by its profile: members of one gang may be of several. The profiles are made
    last, and filled in here."""

    by_scheduler_name: dict[str, FiltersOf] = field(default_factory=dict)

    def __call__(self, pod: PodInfo) -> Sequence[Filter]:
        filters_of = self.by_scheduler_name.get(pod.scheduler_name)
        return () if filters_of is None else filters_of(pod)


@dataclass(frozen=True, slots=True)
class NodeRules:
    """profile_filters: takes the profiles once they are made."""

    devices: DeviceTable
    device_filter: GpuDevices
    cards: CardPlugins
    groups: GroupPlugins
    topology: TopologyPlugins
    reserved: ReservedTargets
    room: ReservedRoom
    profile_filters: ProfileFilters

    # Of every profile

    @property
    def filters(self) -> tuple[Filter, ...]:
        """For every pod. MachineGroup takes the place of the one that policies have."""
        return (self.device_filter, self.groups.filter, self.cards.types, *self.topology.filters)

    @property
    def first(self) -> tuple[NodePreference, ...]:
        """Narrow before any preference of a profile."""
        return (self.reserved, self.groups.order)

    @property
    def preferences(self) -> tuple[NodePreference, ...]:
        """Narrow after `first` and what a profile puts behind it."""
        return (self.cards.types, *self.topology.preferences)

    @property
    def tables(self) -> tuple[Follower, ...]:
        """Return tables that filters read in addition to the cluster; see ClusterView."""
        return (*self._zones, self.devices)

    def annotations_of(self, pod: PodInfo, node: str) -> Mapping[str, str]:
        """What a pod says once it is bound: which cards it has. For any thread."""
        return self.devices.annotations_of(pod, node)

    def in_place_of(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        """The filters of a policy, those with tables in the place of those without."""
        ours = {one.name: one for one in self.filters}
        return tuple(ours.get(one.name, one) for one in filters)

    def has_order(self, view: ClusterView) -> bool:
        """Whether some node may come before another: there are cards, listed types of cards, machine groups, or nodes
        that are kept for pods.
        """
        lists_types = bool(self.cards.scarcity.options.rare_types)
        has_groups = bool(view.index.labels.column(MACHINE_GROUP).names)
        return self.reserved.has_any or self.room.has_any or self.devices.has_any or lists_types or has_groups

    def order_beside(self, filters: Iterable[Filter]) -> tuple[NodePreference, ...]:
        """What comes first in the extender: room and nodes kept for pods, then rules whose filter a policy runs."""
        names = {one.name for one in filters}
        order = ((self.groups.filter, self.groups.order), (self.cards.types, self.cards.types))
        return (self.room, self.reserved, *(preference for of_rule, preference in order if of_rule.name in names))

    def under(self, rule_of: Callable[[PodInfo], ListedCards]) -> NodeRules:
        """Return the same rules by what a policy says of cards. rule_of: of a pod."""
        types = CardTypes(self.devices, self.cards.scarcity, rule_of)
        return replace(self, cards=replace(self.cards, types=types))

    # Of the process

    def followers(self) -> Iterator[Follower]:
        """In the order in which they have to be attached."""
        yield from self.tables
        yield from (self.cards.demand, self.groups.use, self.reserved)

    def listen(self, changed: Callable[[], None]) -> None:
        """Call back when a rule may let pods in that it rejected."""
        self.cards.scarcity.on_change.append(changed)
        self.groups.use.on_change.append(changed)
        if self.topology.zones is not None:
            self.topology.zones.on_room.append(changed)

    def look(self) -> None:
        """Let time pass: what is scarce, who still waits for machines, what nodes were asked to publish. Every second,
        under the lock of the tables."""
        self.cards.scarcity.advance()
        self.groups.use.look()
        if self.topology.zones is not None:
            self.topology.zones.tick()

    def sources(self, api: ApiClient) -> Iterator[ResourceSource]:
        """Follow RebalancePlans and the NUMA zones of nodes, as far as they are installed; not started yet. Pods are
        placed without them.
        """
        yield self.source_of_plans(api)
        if zones := self.subscriptions():
            yield source_of(api, zones)

    def source_of_plans(self, api: ApiClient) -> ResourceSource:
        """Follow RebalancePlans alone, which a cluster without a rebalancer does not have; not started yet."""
        return source_of(api, (self.reserved.subscription(),))

    def subscriptions(self) -> tuple[Subscription[Any], ...]:
        """Resources that only these tables read, and that a dry run reads, too."""
        if self.topology.zones is None:
            return ()
        return (Subscription(node_resource_topologies(self.devices.options), self.topology.zones.news),)

    @property
    def _zones(self) -> tuple[Follower, ...]:
        return () if self.topology.zones is None else (self.topology.zones,)


def node_rules(
    cluster: AssumingCluster,
    options: NodeRuleOptions,
    gangs: GangLookup | None,
    *,
    clock: Callable[[], float],
    class_resources: Container[str] = frozenset(),
) -> NodeRules:
    """Under the lock of the tables; nothing is attached yet.

    gangs           : None = PodGroups are not heeded
    clock           : unix seconds
    class_resources : extended resources that a DeviceClass offers; may change
    """
    state, profile_filters = cluster.state, ProfileFilters()
    devices = DeviceTable(state, options.devices, is_assumed=cluster.assumed.__contains__, clock=clock)
    return NodeRules(
        devices=devices,
        device_filter=GpuDevices(devices, class_resources),
        cards=card_plugins(state, devices, options.cards, clock=clock),
        groups=group_plugins(state, options.machine_groups, devices, clock=clock),
        topology=topology_plugins(state, devices, gangs, profile_filters, options.topology, clock=clock),
        reserved=ReservedTargets(state, clock=clock),
        room=ReservedRoom(cluster),
        profile_filters=profile_filters,
    )
