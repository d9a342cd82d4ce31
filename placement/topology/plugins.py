"""All that a profile needs of topology: the table and plugins, made before the cluster is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cluster.tables.state import ClusterState
from placement.devices.device_table import DeviceTable
from placement.filters.filter import Filter
from placement.plugins import NodePreference
from placement.pod_groups.gangs import Gangs
from placement.topology.gang_topology import GangTopology
from placement.topology.members import FiltersOf
from placement.topology.near_cards import NearCards
from placement.topology.numa_filter import NodeResourceTopologyMatch
from placement.topology.options import TopologyOptions
from placement.topology.whole_cores import WholeCores
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
    gangs: Gangs | None,
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
    cards = NearCards(zones, devices, devices.choose)
    devices.choose = cards.choose
    return TopologyPlugins(zones, of_gangs, NodeResourceTopologyMatch(zones), cards, WholeCores(zones))
