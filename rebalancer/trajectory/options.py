"""Settings of trajectories: `replay.trajectory`. How plans are made is said by the settings under `rebalance`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from base.setting_group import SettingGroup


class TrajectoryOptions(SettingGroup):
    """What `replay --trajectory` plays. Plans follow `rebalance`: horizon, planning, budget, cooldown, cost.move."""

    release: float = Field(default=0.0, ge=0, le=1)
    """Share of the services that is released each day at 04:00, in addition to the recorded releases: all their pods
    are placed anew, in random order."""

    forecast: Literal["model", "last_week"] = "model"
    """By what the rules `placement`, `moves` and `placement_and_moves` decide: a model that is fitted on the days
    before, or the week before as it was."""

    fit_nights: int = Field(default=1, ge=1, le=14)
    """A model is fitted every so many nights. 1, as the trainer does, fits for every night that is played."""

    improvement_effort: float = Field(default=10, ge=0)
    """In place of `rebalance.planning.improvement_effort`, since many plans are made in a row."""
