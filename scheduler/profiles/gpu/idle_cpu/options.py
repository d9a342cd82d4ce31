"""Settings of idle cores of GPU nodes: `schedule.gpu.idle_cpu`."""

from __future__ import annotations

from enum import Enum
from typing import Self

from pydantic import Field, model_validator

from base.setting_group import Duration, SettingGroup


class PlainPods(Enum):
    """Where pods of the profile may go that ask for no GPU and are not offline."""

    APART = "apart"  # to nodes without GPUs; members of a PodGroup to all, since they belong to the work on the GPUs
    ANYWHERE = "anywhere"


class IdleCpuOptions(SettingGroup):
    """Offline pods without GPUs on the idle cores of GPU nodes (docs/use/idle-cpu.md)."""

    dry_run: bool = False
    """Decide and report, and evict no pod."""

    priority_below: int = 0
    """Pods of a lower priority are offline without saying so."""

    ceiling: float = Field(default=0.8, gt=0, le=1)
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
