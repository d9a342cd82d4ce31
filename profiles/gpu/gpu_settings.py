"""Settings of the GPU profile: `schedule.gpu`, with those of devices, of the mix, of idle cores and of the tide."""

from __future__ import annotations

from enum import Enum
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from base.setting_group import Duration, SettingGroup
from forecast.hot_share import HOT_SHARE


class TideOptions(SettingGroup):
    """Training makes room for the inference that is forecast, and grows back (docs/use/tide.md)."""

    enabled: bool = True
    """Plan and move trainings. If false, trainings stay as they are."""

    dry_run: bool = False
    """Decide and report, and scale nothing."""

    every: Duration = Field(default=30, ge=1, le=600)
    """Time between two plans."""

    margin: float = Field(default=0.02, ge=0, le=2)
    """Share by which all inference together may need more than the forecast."""

    spread: float = Field(default=0.05, ge=0, le=2)
    """Share by which each service may need more on its own. The errors of services add as their squares do."""

    reserve_gpus: float = Field(default=0, ge=0, le=1e6)
    """GPUs of each pool that are left to inference in addition."""

    half_life: Duration = Field(default=21_600, ge=60, le=604_800)
    """Time in which half of what inference holds above its forecast now is forgotten."""

    notice: Duration = Field(default=60, ge=0, le=3600)
    """Time in addition to the checkpoint grace until drained GPUs are free and inference has started on them."""

    grace: Duration = Field(default=300, ge=0, le=86_400)
    """Time that a training needs to write its checkpoint, if the training does not say."""

    dwell: Duration = Field(default=7200, ge=0, le=86_400)
    """Time that a training keeps what it was given. It grows only into room that lasts this time. A training that
    shrinks gives up at once what it would have to give up in that time.
    """

    dead_band: float = Field(default=2, ge=0, le=1e6)
    """GPUs. A training that would grow by less, and not to its full size, does not grow."""

    moves_per_job: int = Field(default=12, ge=0, le=1_000_000)
    """Moves of one training in a local day. Growing stops one move short of it, which is kept for shrinking. Shrinking
    for inference is never refused."""

    moves_per_day: int = Field(default=500, ge=0, le=1_000_000_000)
    """Moves of all trainings together in a local day, by the same rule."""

    take_whole: bool = True
    """Stop a training as a whole if it cannot shrink any further and inference needs its GPUs."""

    preview_hours: float = Field(default=24, ge=1, le=168)
    """Hours ahead for which moves are shown. Demand is known for a week."""

    blind_margin: float = Field(default=0.1, ge=0, le=2)
    """Share of what inference holds that stays free of training while no usable forecast is there."""

    pool_label: str = ""
    """Node label that divides pools further than the card model does. Empty: none."""

    kinds: tuple[str, ...] = ()
    """Further workloads that may be scaled, as group/version/plural. They are found by the label of the tide."""

    @field_validator("kinds")
    @classmethod
    def _named_in_full(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind.count("/") != 2 or not all(kind.split("/")):
                raise ValueError(f"{kind!r} is no kind: write group/version/plural, such as kubeflow.org/v1/mpijobs")
        return kinds

    def lead(self, grace: float | None) -> float:
        """Seconds from when a training is to shrink until its GPUs are free: it may be seen one look late. grace: as it
        says; None = it does not."""
        return (self.grace if grace is None else grace) + self.notice + self.every


class PlainPods(Enum):
    """Where pods of the profile may go that ask for no GPU and are not offline."""

    APART = "apart"  # to nodes without GPUs; members of a PodGroup to all, since they belong to the work on the GPUs
    ANYWHERE = "anywhere"


class IdleCpuOptions(SettingGroup):
    """Offline pods without GPUs on the idle cores of GPU nodes (docs/use/tide.md)."""

    dry_run: bool = False
    """Decide and report, and evict no pod."""

    priority_below: int = 0
    """Pods of a lower priority are offline without saying so."""

    ceiling: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Share of a node's CPU and memory that the upper bound of its load with an offline pod stays below."""

    hours: int = Field(default=6, ge=1, le=168)
    """Hours ahead of the forecast that admits an offline pod. Short: what comes later evicts it, see `lead`."""

    cores_per_gpu: float | None = Field(default=None, ge=0)
    """Cores kept for each idle GPU. None: as many as pods with such cards request for each."""

    memory_per_gpu: float | None = Field(default=None, ge=0)
    """GiB kept for each idle GPU. None: as much as pods with such cards request for each."""

    plain_pods: PlainPods = PlainPods.APART
    """Nodes of other pods without GPUs. apart: nodes without GPUs. anywhere: all nodes."""

    evict: bool = True
    """Evict offline pods when the cores are needed. If false, they only give way to preemption."""

    lead: Duration = Field(default=1800, ge=0)
    """Offline pods are evicted this long before the predicted load passes the ceiling: they need time to end. At most
    `hours`."""

    slack: float = Field(default=0.05, ge=0, lt=1)
    """Share of the CPU by which the ceiling has to be passed before a pod is evicted, so that figures that move a
    little evict none. Then pods are evicted down to the ceiling."""

    @model_validator(mode="after")
    def _foreseeable(self) -> Self:
        if self.lead > 3600 * self.hours:
            raise ValueError("lead must be at most as long as hours")
        return self

    @property
    def memory_bytes_per_gpu(self) -> float | None:
        """memory_per_gpu, as nodes and pods count it."""
        return None if self.memory_per_gpu is None else self.memory_per_gpu * 2.0**30


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


class DraOptions(SettingGroup):
    """How long the search for devices of ResourceClaims may take (docs/use/dra.md)."""

    most_steps: int = Field(default=20_000, ge=1)
    """Devices that are tried for the claims of one pod on one node before they count as not fitting there: claims with
    constraints over many devices could take for ever."""

    write_timeout: Duration = Field(default=20, gt=0, le=600)
    """Time in which the claims of a pod have to be written to the API server, repetitions included."""

    binding_timeout: Duration = Field(default=600, gt=0, le=86_400)
    """Time that drivers have, from the allocation on, to make devices with binding conditions ready."""


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
