"""Settings of the online profile's gap for pods of low priority: `schedule.colocation`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup
from forecast.hot_share import HOT_SHARE


class GapOptions(SettingGroup):
    """Pods of low priority in the gap between the predicted peak and capacity (docs/use/colocation.md)."""

    priority_below: int = 0
    """Pods of a lower priority are admitted by forecast."""

    ceiling: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Share of a node's capacity that the upper bound of its load with such a pod stays below."""

    hours: int = Field(default=24, ge=1, le=168)
    """Hours ahead of the forecast; such pods are expected to have ended then."""
