"""docs/use/topology.md lists every metric, and its examples are read as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from placement.node_rule_settings import DeviceOptions
from placement.node_rule_upkeep import TopologyCollector
from placement.pod_groups.pod_group import MOST_LEVELS
from placement.topology.node_zones import CpuManager, Scope, TopologyManagerPolicy
from placement.topology.zone_decoding import node_resource_topologies
from scheduler.gangs.group_decoding import POD_GROUPS
from tests.placement.topology.gang_world import GangWorld, gpu_node

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


def test_the_examples() -> None:
    group, _ = POD_GROUPS.decoded(json.dumps(EXAMPLES["PodGroup"]).encode())
    assert not group.problem and len(group.topology.preferred) == 3 and group.topology.required
    node, _ = node_resource_topologies(DeviceOptions()).decoded(json.dumps(EXAMPLES["NodeResourceTopology"]).encode())
    assert (node.policy, node.scope) == (TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.POD)
    assert node.cpus == CpuManager(full_cores=True, threads_per_core=2)
    assert node.layout.levels == (((0, 1), (2, 3)), ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert [zone.available["nvidia.com/gpu"] for zone in node.zones] == [4, 3]
