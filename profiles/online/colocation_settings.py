"""Settings of the gap for pods that may give way or wait: `schedule.colocation`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import SettingGroup
from forecast.hot_share import HOT_SHARE


class GapOptions(SettingGroup):
    """Pods in the gap between the predicted peak and capacity: those of low priority (docs/use/colocation.md), offline
    ones on GPU nodes (docs/use/tide.md), and jobs (docs/use/jobs.md)."""

    priority_below: int = 0
    """Pods of a lower priority are admitted by forecast, and are offline pods for the GPU profile."""

    ceiling: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Share of a node's capacity that its load stays below with such a pod. `hot_share` unless it is set."""

    hours: ClassVar[int] = 24
    """Hours ahead of the forecast; such pods are expected to have ended then."""
