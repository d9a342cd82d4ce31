"""docs/use/gpu.md and docs/use/node-rules.md name what there is."""

from __future__ import annotations

from pathlib import Path

from kube.objects.objects import ANNOTATION_PREFIX
from placement.card_types.card_scarcity import CardCollector
from placement.card_types.card_type_requests import GPU_TYPE_PREFERRED
from placement.devices import gpu_devices
from placement.devices.declared_devices import GPU_INDEX, MOST_DEVICES, sharing_annotations
from placement.devices.device_demand import GPU_MILLI
from placement.filters.pod_annotations import GPU_TYPE, MACHINE_GROUP
from placement.machine_groups.borrowers import GroupCollector
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import BORROW
from placement.node_rule_settings import GroupOwner, MachineGroupOptions
from placement.node_rule_upkeep import DeviceCollector
from tests.placement.machine_groups.group_world import GroupWorld, group_node, of_team

USE = Path(__file__).parents[2] / "docs" / "use"
GPUS, GROUPS = (USE / "gpu.md").read_text(), (USE / "node-rules.md").read_text()


def test_every_metric_is_listed() -> None:
    world = GroupWorld([])
    assert all(f"`{one.name}{{model}}`" in GPUS for one in CardCollector(world.scarcity).collect())
    assert all(f"`{one.name}" in GPUS for one in DeviceCollector(world.table).collect())
    assert all(f"`{one.name}`" in GROUPS for one in GroupCollector(world.use).collect())


def test_names_that_people_write_are_those_of_the_code() -> None:
    for key in (GPU_MILLI, GPU_INDEX, *sharing_annotations(0, 1, 1, 0.0)):
        assert f"`{key}" in GPUS
    for annotation in (GPU_TYPE, GPU_TYPE_PREFERRED):
        assert f"`{annotation.removeprefix(ANNOTATION_PREFIX)}`" in GPUS
    assert str(MOST_DEVICES) in GPUS
    text = " ".join(GROUPS.split())
    assert MACHINE_GROUP in text and f'{BORROW}: "true"' in text and f"filter {MachineGroup.name} " in text


def test_every_reason_is_explained_as_it_is_given() -> None:
    reasons = [value for name, value in vars(gpu_devices).items() if name.startswith("_") and "node(s)" in str(value)]
    assert len(reasons) == 7 and all(f"| {reason}" in GPUS for reason in reasons)
    world = GroupWorld(
        [group_node("a", "g")], (), MachineGroupOptions(name="g", owners=(GroupOwner(namespaces=("search",)),))
    )
    (rejection,) = world.filter.filter(of_team("p", "shop", "g"), world.view)
    assert f'"{rejection.reason}"' in GROUPS
