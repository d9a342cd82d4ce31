"""What is switched off is not there, and what is there is what the framework asks for."""

from __future__ import annotations

import pytest

from placement.node_rule_settings import TopologyOptions
from placement.node_rules import TopologyPlugins, topology_plugins
from tests.placement.topology.gang_world import GangWorld, gpu_node


def made(*, gangs: bool = True, node_topologies: bool = True) -> tuple[GangWorld, TopologyPlugins]:
    world = GangWorld([gpu_node("a")])
    world.devices.choosers.clear()
    options = TopologyOptions(gangs=gangs, node_topologies=node_topologies)
    return world, topology_plugins(world.view.state, world.devices, world.gangs, lambda pod: (), options)


@pytest.mark.parametrize(
    ("off", "filters", "preferences"),
    [
        ({}, ["GangTopology", "NodeResourceTopologyMatch"], ["GangTopology", "NearCards", "WholeCores"]),
        ({"gangs": False}, ["NodeResourceTopologyMatch"], ["NearCards", "WholeCores"]),
        ({"node_topologies": False}, ["GangTopology"], ["GangTopology"]),
        ({"gangs": False, "node_topologies": False}, [], []),
    ],
)
def test_what_is_switched_off(off: dict[str, bool], filters: list[str], preferences: list[str]) -> None:
    world, plugins = made(**off)
    assert [one.name for one in plugins.filters] == filters
    assert [one.name for one in plugins.preferences] == preferences
    assert (not world.devices.choosers) is (plugins.cards is None)
