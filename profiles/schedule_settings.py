"""Settings of `schedule` as a whole: those of every loop, and those of the profiles."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from profiles.gpu.gpu_settings import GpuOptions
from profiles.job.job_settings import JobOptions
from profiles.online.colocation_settings import GapOptions
from scheduler.schedule_settings import LoopSettings


class ScheduleSettings(LoopSettings):
    """Settings of the command `schedule`."""

    colocation: GapOptions = Field(default_factory=GapOptions)
    job: JobOptions = Field(default_factory=JobOptions)
    gpu: GpuOptions = Field(default_factory=GpuOptions)

    @property
    def all_scheduler_names(self) -> dict[str, str]:
        """schedulerName by profile, of those that do not run here, too."""
        return {"online": self.scheduler_name, "gpu": self.gpu.scheduler_name, "job": self.job.scheduler_name}

    @model_validator(mode="after")
    def _names_of_their_own(self) -> Self:
        profile_of: dict[str, str] = {}
        for profile, name in self.scheduler_names.items():
            if name in profile_of:
                raise ValueError(
                    f"each profile has a scheduler name of its own, {profile_of[name]} and {profile} both have "
                    f"{name!r}: set scheduler_name, gpu.scheduler_name or job.scheduler_name"
                )
            profile_of[name] = profile
        return self
