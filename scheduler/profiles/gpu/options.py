"""Settings of the GPU profile: `schedule.gpu`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from base.setting_group import SettingGroup
from scheduler.profiles.gpu.dra.options import DraOptions
from scheduler.profiles.gpu.fragmentation.options import BalanceWeights, MixOptions
from scheduler.profiles.gpu.idle_cpu.options import IdleCpuOptions
from scheduler.profiles.gpu.tide.options import TideOptions


class GpuOptions(SettingGroup):
    """How pods that use GPUs are placed (docs/use/gpu.md)."""

    scheduler_name: str = Field(default="gpu-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the GPU profile."""

    placement: Literal["fragmentation", "balanced"] = "fragmentation"
    """Rule that chooses nodes. fragmentation: the fewest cards become useless for other pods. balanced: cores, memory
    and cards are equally used."""

    slack: float = Field(default=1, ge=0)
    """Nodes that differ by at most this are equally good: thousandths of a card, or points of balance."""

    mix: MixOptions = Field(default_factory=MixOptions)
    balance: BalanceWeights = Field(default_factory=BalanceWeights)
    dra: DraOptions = Field(default_factory=DraOptions)
    idle_cpu: IdleCpuOptions = Field(default_factory=IdleCpuOptions)
    tide: TideOptions = Field(default_factory=TideOptions)
