"""Settings of storms and of the room that is kept for them: `schedule.job.storm`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class StormOptions(SettingGroup):
    """Headroom for many jobs at once (docs/use/jobs.md)."""

    enabled: bool = True
    """Keep room for storms. If false, storms are only forecast."""

    threshold: int = Field(default=50, ge=1)
    """Pods per minute, beyond what comes steadily, that make a storm."""

    lead: Duration = Field(default=300, ge=0, le=86_400)
    """Time before a storm from which room is kept."""

    grace: Duration = Field(default=120, ge=0, le=86_400)
    """Time after the last minute of a storm began until which room is kept, a minute at least, or until its pods have
    come."""

    most_room: float = Field(default=0.5, gt=0, le=1)
    """Share of what is free that may be kept for storms. The rest is for all pods, whatever is expected."""

    zone: str = ""
    """Time zone of CronJobs that name none: that of the kube-controller-manager. Empty: UTC."""
