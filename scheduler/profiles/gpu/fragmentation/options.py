"""Settings of the choice of nodes and cards: `schedule.gpu.mix` and `schedule.gpu.balance`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class MixOptions(SettingGroup):
    """Which pods are expected to come: those that came lately (docs/use/gpu.md)."""

    half_life: Duration = Field(default=86_400, ge=60)
    """Time after which a pod that was created counts half."""

    most_shapes: int = Field(default=128, ge=1, le=1024)
    """Shapes of pods in the mix, those that weigh most."""

    drift: float = Field(default=0.05, ge=0, le=1)
    """Share of the mix that has to have changed before nodes are judged by a new one."""

    every: Duration = Field(default=10, gt=0)
    """Time between two looks at whether the mix has changed."""


class BalanceWeights(SettingGroup):
    """Weights of resources where cards are placed for balance (docs/use/gpu.md)."""

    cpu: float = Field(default=1, ge=0)
    """Weight of cores among the resources whose use is balanced."""

    memory: float = Field(default=1, ge=0)
    """Weight of memory among the resources whose use is balanced."""

    gpu: float = Field(default=3, ge=0)
    """Weight of cards among the resources whose use is balanced."""
