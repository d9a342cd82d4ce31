"""Settings of the job profile: `schedule.job`, with those of storms and of the valley."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from forecast.hot_share import HOT_SHARE
from placement.virtual_node_settings import ServerlessOptions


class ValleyOptions(SettingGroup):
    """Jobs that may wait, by their annotations, start when little else runs (docs/use/jobs.md)."""

    enabled: bool = True
    """Hold jobs that say how long they may wait until their planned start. If false, they start at once."""

    hours: float = Field(default=24, ge=1, le=120)
    """Hours ahead that a start may be planned."""

    step: Duration = Field(default=300, ge=60, le=1800)
    """Grid of planned starts."""

    every: Duration = Field(default=10, ge=1, le=600)
    """Time between two plans. New jobs are planned within a second or two."""

    first_wait: Duration = Field(default=5, ge=0, le=300)
    """Longest time that a job waits for its first plan."""

    margin: Duration = Field(default=60, ge=0, le=3600)
    """A job is released this long before its latest start in any case: a node has to be found, and images may have to
    be pulled."""

    reserve: Duration = Field(default=900, ge=0, le=21_600)
    """Plans stay clear of the latest start by this time in addition, in case there is no room then; at most by a tenth
    of the time that the job may wait."""

    least_gain: float = Field(default=0.05, ge=0, le=0.9)
    """Share of the cost by which a start must be better than the one planned before, or than now, even if the forecast
    has no error."""

    keep_off_peak: bool = True
    """Prefer nodes that stay below `schedule.job.ceiling`, and hold jobs that may wait while there is none."""


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


class JobOptions(SettingGroup):
    """How jobs are placed (docs/use/jobs.md)."""

    scheduler_name: str = Field(default="job-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the job profile."""

    ceiling: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Share of a node's capacity that its predicted load stays below while a job runs there, if other nodes allow
    it."""

    serverless: ServerlessOptions = Field(default_factory=ServerlessOptions)
    valley: ValleyOptions = Field(default_factory=ValleyOptions)
    storm: StormOptions = Field(default_factory=StormOptions)
