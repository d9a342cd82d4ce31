"""Settings of the GPU profile: how cards are packed, claims, idle cores, and the tide of inference and training."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from forecast.setting_group import Duration, SettingGroup
from scheduler.profiles.gpu.tide.options import TideOptions

__all__ = [
    "BalanceSettings",
    "DraSettings",
    "GpuSettings",
    "IdleCpuSettings",
    "MixSettings",
]


class MixSettings(SettingGroup):
    """Which pods are expected to come: those that came lately (docs/gpu-placement.md)."""

    half_life: Duration = Field(default=86_400, ge=60)
    """A pod that was created so long ago counts half."""

    most_shapes: int = Field(default=128, ge=1, le=1024)
    """Shapes of pods that are told apart."""

    drift: float = Field(default=0.05, ge=0, le=1)
    """Share of them that has to have changed before nodes are judged by another mix."""


class BalanceSettings(SettingGroup):
    """Weights of resources where cards are placed for balance (docs/gpu-placement.md)."""

    cpu: float = Field(default=1, ge=0)
    """Of cores."""

    memory: float = Field(default=1, ge=0)
    """Of memory."""

    gpu: float = Field(default=3, ge=0)
    """Of cards."""


class DraSettings(SettingGroup):
    """ResourceClaims (docs/dra.md)."""

    most_steps: int = Field(default=20_000, ge=1)
    """Devices that are tried for the claims of one pod on one node before they count as not fitting there."""

    write_timeout: Duration = Field(default=20, gt=0, le=600)
    """Within which the claims of a pod have to be written, repetitions included."""

    binding_timeout: Duration = Field(default=600, gt=0, le=86_400)
    """That drivers have, from the allocation on, to make devices with binding conditions ready."""


class IdleCpuSettings(SettingGroup):
    """Offline pods without GPUs on the idle cores of GPU nodes (docs/idle-cpu.md)."""

    priority_below: int = 0
    """Pods of a lower priority are offline without saying so."""

    ceiling: float = Field(default=0.8, gt=0, le=1)
    """Share of a node's CPU and memory that its predicted load with an offline pod stays below."""

    hours: int = Field(default=6, ge=1, le=168)
    """So far ahead."""

    cores_per_gpu: float | None = Field(default=None, ge=0)
    """Cores kept for each idle GPU; left out: as many as pods with such cards request."""

    memory_per_gpu: float | None = Field(default=None, ge=0)
    """GiB kept for each idle GPU; left out: as much as pods with such cards request."""

    plain_pods: Literal["apart", "anywhere"] = "apart"
    """Other pods without GPUs: to nodes without GPUs, or to all."""

    evict: bool = True
    """Evict offline pods when the cores are needed; else they only give way to preemption."""

    lead: Duration = Field(default=1800, ge=0)
    """So long before the predicted load passes the ceiling."""

    slack: float = Field(default=0.05, ge=0, lt=1)
    """Share of the CPU by which the ceiling has to be passed before anybody is evicted."""

    @model_validator(mode="after")
    def _foreseeable(self) -> Self:
        if self.lead > 3600 * self.hours:
            raise ValueError("lead must be at most as long as hours")
        return self


class GpuSettings(SettingGroup):
    """How pods that use GPUs are placed."""

    scheduler_name: str = Field(default="gpu-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the GPU profile."""

    placement: Literal["fragmentation", "balanced"] = "fragmentation"
    """What nodes are chosen by: fewest cards become useless for others, or cores, memory and cards equally used."""

    slack: float = Field(default=1, ge=0)
    """Nodes are equally good that differ by so many thousandths of a card, or points of balance."""

    mix: MixSettings = MixSettings()
    balance: BalanceSettings = BalanceSettings()
    dra: DraSettings = DraSettings()
    idle_cpu: IdleCpuSettings = IdleCpuSettings()
    tide: TideOptions = TideOptions()
