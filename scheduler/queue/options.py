"""Settings of the queue: how long pods wait in its parts. They stand in the section `schedule`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from base.setting_group import Duration, SettingGroup


class BackoffOptions(SettingGroup):
    """How long a pod that could not be placed waits before it is tried again. The defaults are kube-scheduler's."""

    initial: Duration = Field(default=1, ge=0, le=600)
    """Wait after the first attempt; doubled with every further one. 0: none."""

    longest: Duration = Field(default=10, ge=0, le=3600)
    """Where doubling ends; at least `initial`."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.longest < self.initial:
            raise ValueError("longest must be at least initial")
        return self


class QueueOptions(SettingGroup):
    """How long pods wait in the parts of the queue."""

    backoff: BackoffOptions = Field(default_factory=BackoffOptions)

    unschedulable_flush: Duration = Field(default=300, gt=0)
    """A pod that no event has woken for this time is tried again."""

    most_events: int = Field(default=10_000, ge=1)
    """Events remembered for pods in flight. A pod that was longer in flight is tried again in any case."""
