"""Settings of our own scheduling loops: whose pods, on which nodes, how many at a time, and who may write."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from forecast.errors import InputError
from forecast.setting_group import Duration, SettingGroup, check_names
from forecast_scheduler.gpu_settings import GpuSettings
from forecast_scheduler.queue_settings import QueueSettings
from forecast_scheduler.serving_settings import ServingSettings
from scheduler.leader_election.election import LeaseTiming
from scheduler.profiles.job.options import JobOptions

__all__ = [
    "BackoffSettings",
    "ColocationSettings",
    "GangSettings",
    "LeaseSettings",
    "PreemptionSettings",
    "RepairSettings",
    "ScheduleSettings",
]

Share = Annotated[float, Field(gt=0, le=10)]


class BackoffSettings(SettingGroup):
    """How long a pod that could not be placed waits before it is tried again."""

    initial: Duration = Field(default=1, ge=0, le=600)
    """After the first attempt; doubled with every further one. 0: not at all."""

    longest: Duration = Field(default=10, gt=0, le=3600)
    """Never longer than this."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.longest < self.initial:
            raise ValueError("longest must be at least initial")
        return self


class GangSettings(SettingGroup):
    """Pods of one PodGroup, placed all or not at all (docs/gangs.md)."""

    enabled: bool = True
    """Heed PodGroups; else their pods are placed one by one."""

    timeout: Duration = Field(default=60, gt=0)
    """Of groups without scheduleTimeoutSeconds: so long a complete group is tried before others get their turn."""

    pause: Duration = Field(default=60, ge=0)
    """So long a group that is past its timeout is not tried."""


class PreemptionSettings(SettingGroup):
    """Evicting pods of lower priority for one that fits nowhere (docs/preemption.md)."""

    enabled: bool = True
    """Evict; else pods wait for room."""

    protect_started: Duration = Field(default=60, ge=0)
    """Pods that started less long ago are not evicted; 0: all may be."""


class LeaseSettings(SettingGroup):
    """Which of several replicas writes: the one that holds a Lease of coordination.k8s.io.

    Shorter than client-go's 15, 10 and 2 s: a replica that was killed is to be followed within 15 s, the time that its
    successor waits for what it bound last included.
    """

    enabled: bool = True
    """Take the Lease before anything is written; without it only one replica may run; `--leader-elect`."""

    namespace: str = Field(default="forecast-scheduler", min_length=1)
    """Of the Lease."""

    name: str = Field(default="forecast-scheduler", min_length=1)
    """Of the Lease; the same for all replicas, another one for other scheduler names."""

    duration: Duration = Field(default=10, ge=1)
    """A Lease that is not renewed for so long is taken over. Whole seconds."""

    renew_deadline: Duration = Field(default=7, gt=0)
    """A leader that could not renew for so long writes nothing any more."""

    retry_period: Duration = Field(default=1, gt=0)
    """How often the Lease is renewed, or tried to be taken."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.duration != round(self.duration):
            raise ValueError("duration must be whole seconds")
        try:
            LeaseTiming(lease=self.duration, renew_deadline=self.renew_deadline, retry=self.retry_period)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self


class ColocationSettings(SettingGroup):
    """Pods of low priority in the gap between the predicted peak and capacity (docs/colocation.md)."""

    priority_below: int = 0
    """Pods of a lower priority are admitted by forecast."""

    ceiling: float = Field(default=0.8, gt=0, le=1)
    """Share of a node's capacity that its predicted load with such a pod stays below."""

    hours: int = Field(default=24, ge=1, le=168)
    """So far ahead."""


class RepairSettings(SettingGroup):
    """What is done where requests on a node pass its allocatable (docs/sharing-nodes.md)."""

    enabled: bool = True
    """Evict our newest pods there; else it is only counted and told."""


class ScheduleSettings(ServingSettings):
    """How `schedule` runs. It has its scorer inside: the settings under `scorer` count, too, but for serving."""

    group: ClassVar[str] = "schedule"

    port: int = Field(default=8889, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    scheduler_name: str = Field(default="forecast-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the online profile; `--scheduler-name`."""

    profiles: list[str] = Field(default_factory=lambda: ["online"], min_length=1)
    """Profiles that run in this process: online, gpu, job; `--profile`."""

    domain: str = "forecast-scheduler"
    """Pods are only placed on nodes whose label forecast-scheduler.io/domain says this; empty: on those without it;
    `--domain`."""

    share_nodes: list[str] = Field(default_factory=list)
    """Further domains whose nodes are shared with another scheduler; an empty text means nodes without the label;
    `--share-nodes`."""

    dry_run: bool = False
    """Decide and tell, and write nothing to the API server; `--dry-run`."""

    backoff: BackoffSettings = BackoffSettings()

    unschedulable_flush: Duration = Field(default=300, gt=0)
    """A pod that no event has woken for so long is tried again."""

    batch: int = Field(default=1024, ge=1)
    """Most pods of one controller placed in one cycle; a gang is always placed whole."""

    gather: Duration = Field(default=0.05, ge=0, le=1)
    """While pods come one after the other, those of so long are placed together; 0: each as it comes."""

    bindings_in_flight: int = Field(default=128, ge=1, le=4096)
    """Bindings under way at once."""

    binding_timeout: Duration = Field(default=10, gt=0, le=120)
    """Time in which a pod is bound. If no answer came, the API server is asked what became of it, as long after."""

    assume_timeout: Duration = Field(default=60, gt=0, le=300)
    """A pod that was bound but is not seen so by the watch after this time is looked at."""

    bounded_scan: int = Field(default=0, ge=0)
    """Nodes looked at beyond the pods of a batch, for very large clusters; 0: all nodes."""

    score_per_point: float = Field(default=0.2, gt=0, le=100)
    """With the default weights: percent of a node's capacity that counts 10 beside kube-scheduler's scores."""

    highest_peaks: dict[str, Share] = Field(default_factory=dict)
    """By resource: share of capacity that a node's predicted peak must not pass, for instance {cpu: 0.9}."""

    queues: list[QueueSettings] = Field(default_factory=list)
    """Queues of pods; jobs that none takes are in the queue `default`, other such pods go by priority and age
    (docs/queues.md)."""

    unqueued_weight: float = Field(default=4, gt=0)
    """Turns of pods that no queue takes beside those of each queue, where they are equally important."""

    longest_wait: Duration = Field(default=600, ge=0)
    """With queues: a pod that came, or was tried last, so long ago goes next, whatever its priority; 0: never."""

    due_lead: Duration = Field(default=300, ge=0)
    """A pod goes first in its queue from so long before the latest moment it may start; 0: never."""

    gangs: GangSettings = GangSettings()
    preemption: PreemptionSettings = PreemptionSettings()
    lease: LeaseSettings = LeaseSettings()
    colocation: ColocationSettings = ColocationSettings()
    repair: RepairSettings = RepairSettings()
    job: JobOptions = JobOptions()
    gpu: GpuSettings = GpuSettings()

    @property
    def scheduler_names(self) -> dict[str, str]:
        """Of the profiles that run here."""
        names = self.all_scheduler_names
        return {profile: names[profile] for profile in self.profiles if profile in names}

    @property
    def all_scheduler_names(self) -> dict[str, str]:
        """schedulerName by profile, of those that do not run here, too."""
        return {"online": self.scheduler_name, "gpu": self.gpu.scheduler_name, "job": self.job.scheduler_name}

    @field_validator("profiles")
    @classmethod
    def _once_each(cls, profiles: list[str]) -> list[str]:
        if len(set(profiles)) < len(profiles):
            raise ValueError("each profile may be named once")
        return profiles

    @model_validator(mode="after")
    def _queues_with_names(self) -> Self:
        check_names("queue", [one.name for one in self.queues])
        return self

    @model_validator(mode="after")
    def _not_shared_with_itself(self) -> Self:
        if self.domain in self.share_nodes:
            raise ValueError(f"share_nodes names {self.domain!r}, which is the domain of this scheduler")
        return self

    @model_validator(mode="after")
    def _names_of_their_own(self) -> Self:
        profile_of: dict[str, str] = {}
        for profile, name in self.scheduler_names.items():
            if name in profile_of:
                raise ValueError(
                    f"each profile has a scheduler name of its own, {profile_of[name]} and {profile} both have "
                    f"{name!r}: set scheduler_name, gpu.scheduler_name or job.scheduler_name"
                )
            profile_of[name] = profile
        return self
