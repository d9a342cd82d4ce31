"""Settings of the repair of overcommitted nodes: `schedule.repair`."""

from __future__ import annotations

from base.setting_group import SettingGroup


class RepairOptions(SettingGroup):
    """What is done where requests on a node pass its allocatable (docs/use/sharing-nodes.md)."""

    enabled: bool = True
    """Evict our newest pods there. If false, overcommits are only counted and reported."""
