"""Settings of the job profile: `schedule.job`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup
from placement.virtual_nodes.options import ServerlessOptions
from scheduler.profiles.job.storm.options import StormOptions
from scheduler.profiles.job.valley.options import ValleyOptions


class JobOptions(SettingGroup):
    """How jobs are placed (docs/use/jobs.md)."""

    scheduler_name: str = Field(default="job-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the job profile."""

    ceiling: float = Field(default=0.8, gt=0, le=1)
    """Share of a node's capacity that its predicted load stays below while a job runs there, if other nodes allow
    it."""

    serverless: ServerlessOptions = Field(default_factory=ServerlessOptions)
    valley: ValleyOptions = Field(default_factory=ValleyOptions)
    storm: StormOptions = Field(default_factory=StormOptions)
