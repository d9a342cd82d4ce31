"""Settings of gangs: `schedule.gangs`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class GangOptions(SettingGroup):
    """Pods of one PodGroup, placed all or not at all (docs/use/gangs.md)."""

    enabled: bool = True
    """Heed PodGroups. If false, their pods are placed one by one."""

    timeout: Duration = Field(default=60, ge=0)
    """Time from the first failed attempt of a complete group until others go first, for groups without
    scheduleTimeoutSeconds. As in scheduler-plugins."""

    pause: Duration = Field(default=60, ge=0)
    """Time in which a group that is past its timeout is not tried."""
