"""Settings of the job profile: `schedule.job`, with those of storms and of the valley."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import SettingGroup
from placement.virtual_node_settings import ServerlessOptions


class ValleyOptions(SettingGroup):
    """Jobs that may wait, by their annotations, start when little else runs (docs/use/jobs.md)."""

    enabled: bool = True
    """Hold jobs that say how long they may wait until their planned start. If false, they start at once."""

    hours: ClassVar[int] = 24
    """Hours ahead that a start may be planned: each has the forecast of a day."""

    step: ClassVar[float] = 300.0
    """Seconds of the grid of planned starts."""

    every: ClassVar[float] = 10.0
    """Seconds between two plans. New jobs are planned within a second or two."""

    first_wait: ClassVar[float] = 5.0
    """Longest time in seconds that a job waits for its first plan."""

    margin: ClassVar[float] = 60.0
    """Seconds before its latest start at which a job is released in any case: a node has to be found, and images may
    have to be pulled."""

    reserve: ClassVar[float] = 900.0
    """Seconds by which plans stay clear of the latest start in addition, in case there is no room then; at most a tenth
    of the time that the job may wait."""

    least_gain: ClassVar[float] = 0.05
    """Share of the cost by which a start must be better than the one planned before, or than now, even if the forecast
    has no error."""


class StormOptions(SettingGroup):
    """Headroom for many jobs at once (docs/use/jobs.md)."""

    enabled: bool = True
    """Keep room for storms. If false, storms are only forecast."""

    threshold: int = Field(default=50, ge=1)
    """Pods per minute, beyond what comes steadily, that make a storm."""

    zone: str = ""
    """Time zone of CronJobs that name none: that of the kube-controller-manager. Empty: UTC."""

    lead: ClassVar[float] = 300.0
    """Seconds before a storm from which room is kept: pods that are placed meanwhile go elsewhere."""

    grace: ClassVar[float] = 120.0
    """Seconds after the last minute of a storm began until which room is kept, or until its pods have come."""

    most_room: ClassVar[float] = 0.5
    """Share of what is free that may be kept for storms. The rest is for all pods, whatever is expected."""


class JobOptions(SettingGroup):
    """How jobs are placed (docs/use/jobs.md): if nodes allow it, below `schedule.colocation.ceiling`."""

    scheduler_name: str = Field(default="job-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the job profile."""

    serverless: ServerlessOptions = Field(default_factory=ServerlessOptions)
    valley: ValleyOptions = Field(default_factory=ValleyOptions)
    storm: StormOptions = Field(default_factory=StormOptions)
