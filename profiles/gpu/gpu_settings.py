"""Settings of the GPU profile: `schedule.gpu`, with those of idle cores and of the tide."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from base.setting_group import Duration, SettingGroup


class TideOptions(SettingGroup):
    """Training makes room for the inference that is forecast, and grows back (docs/use/tide.md)."""

    enabled: bool = True
    """Plan and move trainings. If false, trainings stay as they are."""

    dry_run: bool = False
    """Decide and report, and scale nothing."""

    reserve_gpus: float = Field(default=0, ge=0, le=1e6)
    """GPUs of each pool that are left to inference in addition to what is forecast."""

    grace: Duration = Field(default=300, ge=0, le=86_400)
    """Time that a training needs to write its checkpoint, if the training does not say."""

    moves_per_job: int = Field(default=12, ge=0, le=1_000_000)
    """Most moves of one training in a local day. Shrinking for inference is never refused."""

    moves_per_day: int = Field(default=500, ge=0, le=1_000_000_000)
    """Most moves of all trainings together in a local day. Shrinking for inference is never refused."""

    take_whole: bool = True
    """Stop a training as a whole if it cannot shrink any further and inference needs its GPUs."""

    pool_label: str = ""
    """Node label that divides pools further than the card model does. Empty: none."""

    kinds: tuple[str, ...] = ()
    """Further workloads that may be scaled, as group/version/plural. They are found by the label of the tide."""

    every: ClassVar[float] = 30.0
    """Seconds between two plans: little beside `grace`."""

    margin: ClassVar[float] = 0.02
    """Share by which all inference together may need more than the forecast."""

    spread: ClassVar[float] = 0.05
    """Share by which each service may need more on its own. The errors of services add as their squares do."""

    half_life: ClassVar[float] = 21_600.0
    """Seconds in which half of what inference holds above its forecast now is forgotten."""

    notice: ClassVar[float] = 60.0
    """Seconds in addition to the checkpoint grace until drained GPUs are free and inference has started on them."""

    dwell: ClassVar[float] = 7200.0
    """Seconds that a training keeps what it was given, so that it works for longer than it stops. It grows only into
    room that lasts this time; one that shrinks gives up at once what it would have to give up in that time."""

    dead_band: ClassVar[float] = 2.0
    """GPUs. A training that would grow by less, and not to its full size, does not grow."""

    preview_hours: ClassVar[float] = 24.0
    """Hours ahead for which moves are shown."""

    blind_margin: ClassVar[float] = 0.1
    """Share of what inference holds that stays free of training while there is no usable forecast."""

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
    """Offline pods without GPUs on the idle cores of GPU nodes (docs/use/tide.md). `schedule.colocation` says which
    pods are offline by their priority, and how full a node may get."""

    cores_per_gpu: float | None = Field(default=None, ge=0)
    """Cores kept for each idle GPU. None: as many as pods with such cards request for each."""

    memory_per_gpu: float | None = Field(default=None, ge=0)
    """GiB kept for each idle GPU. None: as much as pods with such cards request for each."""

    plain_pods: PlainPods = PlainPods.APART
    """Nodes of other pods without GPUs. apart: nodes without GPUs. anywhere: all nodes."""

    evict: bool = True
    """Evict offline pods when the cores are needed. If false, evictions are only reported; preemption still removes
    them."""

    lead: ClassVar[float] = 1800.0
    """Seconds before the predicted load passes the ceiling at which offline pods are evicted: they need time to end."""

    slack: ClassVar[float] = 0.05
    """Share of the CPU by which the ceiling has to be passed before a pod is evicted, so that figures that move a
    little evict none. Then pods are evicted down to the ceiling."""

    @property
    def memory_bytes_per_gpu(self) -> float | None:
        """memory_per_gpu, as nodes and pods count it."""
        return None if self.memory_per_gpu is None else self.memory_per_gpu * 2.0**30


class GpuOptions(SettingGroup):
    """How pods that use GPUs are placed (docs/use/gpu.md)."""

    scheduler_name: str = Field(default="gpu-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the GPU profile."""

    placement: Literal["fragmentation", "balanced"] = "fragmentation"
    """Rule that chooses nodes. fragmentation: the fewest cards become useless for other pods. balanced: cores, memory
    and cards are equally used."""

    idle_cpu: IdleCpuOptions = Field(default_factory=IdleCpuOptions)
    tide: TideOptions = Field(default_factory=TideOptions)
