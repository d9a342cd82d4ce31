"""docs/use/machine-groups.md names what there is."""

from __future__ import annotations

from pathlib import Path

from placement.filters.annotations import MACHINE_GROUP
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import BORROW
from placement.machine_groups.metrics import GroupCollector
from placement.machine_groups.options import Group, GroupOwner
from tests.placement.machine_groups.group_world import GroupWorld, group_node, of_team

DOC = (Path(__file__).parents[3] / "docs" / "use" / "machine-groups.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in GroupCollector(GroupWorld([]).use).collect():
        assert f"`{family.name}`" in DOC


def test_names_that_people_write_are_those_of_the_code() -> None:
    text = " ".join(DOC.split())
    assert MACHINE_GROUP in text and f'{BORROW}: "true"' in text and f"filter {MachineGroup.name} " in text


def test_the_reason_is_as_it_is_given() -> None:
    world = GroupWorld([group_node("a", "g")], (), Group(name="g", owners=(GroupOwner(namespaces=("search",)),)))
    (rejection,) = world.filter.filter(of_team("p", "shop", "g"), world.view)
    assert f'"{rejection.reason}"' in DOC
