"""Settings of the job profile: virtual nodes, storms, and what may wait for the valley (docs/jobs.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from forecast.setting_group import Duration, SettingGroup, check_names

__all__ = [
    "JobSettings",
    "ProviderSettings",
    "ServerlessSettings",
    "StormSettings",
    "ValleySettings",
]

_MOVED_KEYS: Final = {
    "queues": "queues",
    "longest_wait": "longest_wait",
    "due_lead": "due_lead",
    "online_weight": "unqueued_weight",
}
"""Keys that were under schedule.job, and their names under schedule."""


Name = Annotated[str, Field(min_length=1, max_length=63)]


class ProviderSettings(SettingGroup):
    """One provider of virtual nodes, and what may be used of it; what is left out is not limited."""

    name: Name
    """As the taint virtual-kubelet.io/provider of its nodes says."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Of its nodes; empty: those with the taint."""

    most_pods: int | None = Field(default=None, ge=0)
    """Pods of ours there at once."""

    most_cpu: float | None = Field(default=None, ge=0)
    """Cores that pods of ours request there."""

    most_memory: float | None = Field(default=None, ge=0)
    """GiB that pods of ours request there."""

    most_starting: int | None = Field(default=None, ge=1)
    """Pods that are bound and have not started yet."""

    price_cpu_hour: float = Field(default=0, ge=0)
    """Of a core for an hour."""

    price_memory_gib_hour: float = Field(default=0, ge=0)
    """Of a GiB of memory for an hour."""

    most_spend_per_hour: float | None = Field(default=None, ge=0)
    """What all pods of ours there may cost per hour at once."""

    weight: float = Field(default=1, gt=0)
    """Of those that have room, its share of the pods."""

    start_timeout: Duration = Field(default=300, gt=0)
    """A pod that has not started after so long is taken back."""

    backoff_initial: Duration = Field(default=30, gt=0)
    """A provider that failed gets no pods for so long; doubled with every further failure."""

    backoff_longest: Duration = Field(default=600, gt=0)
    """Never longer than this."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.backoff_longest < self.backoff_initial:
            raise ValueError("backoff_longest must be at least backoff_initial")
        return self


class ServerlessSettings(SettingGroup):
    """Virtual nodes (docs/serverless.md)."""

    first: Literal["serverless", "cluster", "never"] = "serverless"
    """Which nodes come first, the others taking what is left over; never: no virtual nodes at all."""

    tolerate: bool = True
    """Pods that may leave the cluster need not tolerate the taint of providers."""

    providers: list[ProviderSettings] = Field(default_factory=list)
    """Of virtual nodes, with their quotas; nodes of others are not limited."""

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        check_names("provider", [one.name for one in self.providers])
        return self


class ValleySettings(SettingGroup):
    """Jobs that may wait, by their annotations, start when little else runs (docs/job-plan.md)."""

    enabled: bool = True
    """Hold jobs with slack until their planned start; else they start at once."""

    hours: float = Field(default=24, ge=1, le=120)
    """So far ahead a start may be planned."""

    first_wait: Duration = Field(default=5, ge=0, le=300)
    """A job waits for its first plan no longer than this."""

    margin: Duration = Field(default=60, ge=0, le=3600)
    """A job is let go so long before its latest start in any case."""


class StormSettings(SettingGroup):
    """Headroom for many jobs at once (docs/storms.md)."""

    enabled: bool = True
    """Keep room for storms; else they are only forecast."""

    threshold: int = Field(default=50, ge=1)
    """Pods per minute, beyond what comes steadily, that make a storm."""

    lead: Duration = Field(default=300, ge=0)
    """Room is kept from so long before a storm."""

    grace: Duration = Field(default=120, ge=0)
    """And until so long after its last minute began, a minute at least, or until its pods have come."""

    most_room: float = Field(default=0.5, gt=0, le=1)
    """Share of what is free that may be kept for storms: the rest is for everybody, whatever is expected."""

    zone: str = ""
    """Time zone of CronJobs that name none: that of the kube-controller-manager; empty: UTC."""


class JobSettings(SettingGroup):
    """How jobs are placed."""

    scheduler_name: str = Field(default="job-scheduler", min_length=1)
    """Pods with this schedulerName are placed by the job profile."""

    ceiling: float = Field(default=0.8, gt=0, le=1)
    """Share of a node's capacity that its predicted load during the run is kept below where other nodes allow it."""

    serverless: ServerlessSettings = ServerlessSettings()
    valley: ValleySettings = ValleySettings()
    storm: StormSettings = StormSettings()

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, given: Any) -> Any:
        for key, name in _MOVED_KEYS.items():
            if isinstance(given, dict) and key in given:
                raise ValueError(
                    f"schedule.job.{key} is now schedule.{name}, for pods of every profile; a queue with "
                    "`profiles: [job]` takes those of jobs only (docs/queues.md)"
                )
        return given
