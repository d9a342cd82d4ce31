"""Settings of how plans are carried out: `rebalance.execution`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class ExecutionOptions(SettingGroup):
    """How many pods move at a time, and how long each step may take."""

    parallel: int = Field(default=2, ge=1, le=50)
    """Moves under way at once. Two moves of one service are never under way together."""

    pin: Duration = Field(default=0.5, ge=0, le=60)
    """Time between the record of a move and the eviction: parts that place pods learn the target meanwhile."""

    retry: Duration = Field(default=5, gt=0, le=600)
    """Time between two tries to evict a pod that a disruption budget protects."""

    refusal_deadline: Duration = Field(default=300, gt=0, le=86_400)
    """A move whose pod could not be evicted for this time is given up as `refused`."""

    ready_deadline: Duration = Field(default=600, gt=0, le=86_400)
    """A replacement must be ready within this time after the pod went, its grace period included. Otherwise the move
    is `stuck`, and the plan starts nothing more."""

    max_elsewhere: int = Field(default=2, ge=1, le=100)
    """Replacements on other nodes than planned after which the plan starts nothing more."""

    keep_plans: int = Field(default=30, ge=1, le=1000)
    """Finished plans that are kept."""
