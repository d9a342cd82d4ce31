"""Settings of the rules about nodes: `node_rules`. One section for every profile of `schedule` and for `extender`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from base.setting_group import SettingGroup, check_names
from placement.card_types.options import CardOptions
from placement.devices.options import DeviceOptions
from placement.machine_groups.options import Group
from placement.topology.options import TopologyOptions


class NodeRuleOptions(SettingGroup):
    """Which nodes pods may go to and which come first, whatever places them (docs/use/node-rules.md)."""

    devices: DeviceOptions = Field(default_factory=DeviceOptions)
    cards: CardOptions = Field(default_factory=CardOptions)
    machine_groups: tuple[Group, ...] = ()
    """Machine groups with owners (docs/use/machine-groups.md)."""

    topology: TopologyOptions = Field(default_factory=TopologyOptions)

    @model_validator(mode="after")
    def _groups_with_names(self) -> Self:
        check_names("machine group", [one.name for one in self.machine_groups])
        return self
