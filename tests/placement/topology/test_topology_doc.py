"""docs/use/topology.md names what there is, and its examples are read as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from placement.devices.options import DeviceOptions
from placement.pod_groups.group_topology import MOST_LEVELS, TOPOLOGY_PREFERRED, TOPOLOGY_REQUIRED
from placement.topology.cpu_manager import (
    CPU_OPTIONS,
    CPU_POLICY,
    KOORDINATOR_CPUS,
    KOORDINATOR_POLICY,
    MEMORY_POLICY,
    MULTITHREADING,
    THREADS_PER_CORE,
)
from placement.topology.decoding import GPUS, NVLINK_GROUP, PATH, node_resource_topologies
from placement.topology.gang_topology import GangTopology
from placement.topology.metrics import TopologyCollector
from placement.topology.near_cards import NearCards
from placement.topology.node_zones import CpuManager, Policy, Scope
from placement.topology.numa_filter import NodeResourceTopologyMatch
from placement.topology.whole_cores import WholeCores
from scheduler.gangs.decoding import POD_GROUPS
from tests.placement.topology.gang_world import GangWorld, gpu_node
from tests.placement.topology.test_whole_cores import FEW, PART

PAGE = (Path(__file__).parents[3] / "docs" / "use" / "topology.md").read_text()
EXAMPLES: dict[str, dict[str, Any]] = {
    one["kind"]: one for one in map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))
}


def test_every_metric_is_listed() -> None:
    world = GangWorld([gpu_node("a")])
    families = list(TopologyCollector(world.topology, world.zones).collect())
    assert len(families) == 3 and not list(TopologyCollector(None, None).collect())
    for family in families:
        assert f"`{family.name}{'_total' if family.type == 'counter' else ''}`" in PAGE
    assert [sample.labels["level"] for sample in families[0].samples] == [str(n) for n in range(MOST_LEVELS + 1)]


def test_names_are_those_that_are_read() -> None:
    for name in (TOPOLOGY_PREFERRED, TOPOLOGY_REQUIRED, GPUS, NVLINK_GROUP, NodeResourceTopologyMatch.name):
        assert f"`{name}`" in PAGE
    for name in (GangTopology.name, NearCards.name, PATH.split("/")[-1], *Scope, Policy.SINGLE_NUMA_NODE):
        assert (name if isinstance(name, str) else f"`{name.value}`") in PAGE
    for name in (THREADS_PER_CORE, CPU_POLICY, CPU_OPTIONS, MEMORY_POLICY, KOORDINATOR_POLICY, KOORDINATOR_CPUS):
        assert f"`{name}`" in PAGE
    for name in (MULTITHREADING, WholeCores.name, *(policy.value for policy in Policy)):
        assert f"`{name}`" in PAGE
    for reason in (PART, FEW):
        assert f'"{reason}"' in " ".join(PAGE.split())


def test_the_examples() -> None:
    group, _ = POD_GROUPS.decoded(json.dumps(EXAMPLES["PodGroup"]).encode())
    assert not group.problem and len(group.topology.preferred) == 3 and group.topology.required
    node, _ = node_resource_topologies(DeviceOptions()).decoded(json.dumps(EXAMPLES["NodeResourceTopology"]).encode())
    assert (node.policy, node.scope) == (Policy.SINGLE_NUMA_NODE, Scope.POD)
    assert node.cpus == CpuManager(full_cores=True, threads_per_core=2)
    assert node.layout.levels == (((0, 1), (2, 3)), ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert [zone.available["nvidia.com/gpu"] for zone in node.zones] == [4, 3]
