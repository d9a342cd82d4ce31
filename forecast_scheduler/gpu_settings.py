"""Settings of the GPU profile: how cards are packed, claims, idle cores, and the tide of inference and training."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from forecast_scheduler.setting_group import Duration, SettingGroup

__all__ = [
    "BalanceSettings",
    "DraSettings",
    "GpuSettings",
    "IdleCpuSettings",
    "MixSettings",
    "TideSettings",
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


class TideSettings(SettingGroup):
    """Training that makes room for the inference that is forecast, and grows back (docs/tide.md)."""

    enabled: bool = True
    """Plan and move; else trainings stay as they are."""

    dry_run: bool = False
    """Decide and tell, and scale nothing."""

    every: Duration = Field(default=30, ge=1, le=600)
    """Between two looks."""

    margin: float = Field(default=0.02, ge=0, le=2)
    """Share by which all inference together may need more than is forecast."""

    spread: float = Field(default=0.05, ge=0, le=2)
    """Share by which each service may err on its own."""

    reserve_gpus: float = Field(default=0, ge=0)
    """GPUs of each pool that are left to inference besides."""

    half_life: Duration = Field(default=21_600, ge=60, le=604_800)
    """In it half of what inference has beyond its forecast now is forgotten."""

    notice: Duration = Field(default=60, ge=0, le=3600)
    """Beside the checkpoint grace, until drained GPUs are free and inference has started on them."""

    grace: Duration = Field(default=300, ge=0, le=86_400)
    """So long a training takes to write its checkpoint, where it does not say."""

    dwell: Duration = Field(default=7200, ge=0, le=86_400)
    """So long a training keeps what it was given."""

    dead_band: float = Field(default=2, ge=0)
    """GPUs; a training that would grow by less, and not to its full size, does not."""

    moves_per_job: int = Field(default=12, ge=0)
    """Of one training in a local day; shrinking for inference is never refused."""

    moves_per_day: int = Field(default=500, ge=0)
    """Of all trainings together."""

    take_whole: bool = True
    """Trainings that cannot shrink any further are stopped as a whole where inference needs their GPUs."""

    preview_hours: float = Field(default=24, ge=1, le=168)
    """So far ahead moves are shown."""

    blind_margin: float = Field(default=0.1, ge=0, le=2)
    """Without a forecast this share of what inference has is left free of training."""

    pool_label: str = ""
    """Node label by which pools are divided further than by card model; empty: they are not."""

    kinds: list[str] = Field(default_factory=list)
    """Further workloads that may be scaled: group/version/plural."""


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
    tide: TideSettings = TideSettings()
