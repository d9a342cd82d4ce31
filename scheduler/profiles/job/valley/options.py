"""Settings of valley planning and of keeping off peaks: `schedule.job.valley`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


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
