"""Settings of our own scheduling loops: whose pods, on which nodes, how many at a time, and who may write."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from kube.leader_election.lease_options import LeaseOptions
from placement.decisions.decision_settings import DecisionOptions
from scheduler.loop_settings import GangOptions, PreemptionOptions, QueueOptions, RepairOptions, ShardOptions
from scheduler.quota_queues.quota_queue_settings import FairOptions
from serving.server_settings import ServingOptions
from tenants.tenant_settings import TenantOptions


class ScheduleServing(ServingOptions):
    """Where `schedule` listens, and who may ask."""

    group: ClassVar[str] = "schedule.serving"

    port: int = Field(default=8889, ge=0, le=65_535)


class LoopSettings(QueueOptions, FairOptions):
    """How scheduling loops run, whatever their profiles."""

    serving: ScheduleServing = Field(default_factory=ScheduleServing)

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

    decisions: DecisionOptions = Field(default_factory=DecisionOptions)

    dry_run: bool = False
    """Decide and report, and write nothing to the API server; `--dry-run`."""

    batch: ClassVar[int] = 1024
    """Most pods of one controller placed in one cycle, which takes about 0.1 s then. Nothing else is placed meanwhile.
    A gang is always placed whole."""

    gather: ClassVar[float] = 0.05
    """Seconds for which pods that come one after the other are gathered and placed together. Users do not notice it,
    and pods that come at 200 a second make batches of ten."""

    bindings_in_flight: ClassVar[int] = 128
    """Bindings under way at once: an API server that answers in 50 ms binds 2,500 pods/s."""

    binding_timeout: ClassVar[float] = 10.0
    """Seconds in which a pod is bound. If no answer came, the API server is asked what became of it, as long after."""

    assume_timeout: ClassVar[float] = 60.0
    """Seconds after which a pod that was bound and is not seen so by the watch is looked at."""

    score_per_point: ClassVar[float] = 0.2
    """Percent of a node's capacity that counts 10 points in kube-scheduler's scores, with the default weights: the 100
    points that one of its scores gives at most are 2 % of a node."""

    gangs: GangOptions = Field(default_factory=GangOptions)
    preemption: PreemptionOptions = Field(default_factory=PreemptionOptions)
    tenants: TenantOptions = Field(default_factory=TenantOptions)
    leader_election: LeaseOptions = Field(default_factory=LeaseOptions)
    shards: ShardOptions = Field(default_factory=ShardOptions)
    repair: RepairOptions = Field(default_factory=RepairOptions)

    @property
    def scheduler_names(self) -> dict[str, str]:
        """Return schedulerName by profile, of those that run here: `NAME-scheduler` if no setting names it."""
        names = self.all_scheduler_names
        return {profile: names.get(profile, f"{profile}-scheduler") for profile in self.profiles}

    @property
    def all_scheduler_names(self) -> dict[str, str]:
        """Return schedulerName by profile, of those for which a setting names it, whether they run here or not."""
        return {}

    @field_validator("profiles")
    @classmethod
    def _once_each(cls, profiles: list[str]) -> list[str]:
        if len(set(profiles)) < len(profiles):
            raise ValueError("each profile may be named once")
        return profiles

    @model_validator(mode="after")
    def _not_shared_with_itself(self) -> Self:
        if self.domain in self.share_nodes:
            raise ValueError(f"share_nodes names {self.domain!r}, which is the domain of this scheduler")
        return self

    @model_validator(mode="after")
    def _shards_have_leases(self) -> Self:
        if self.shards.enabled and not self.leader_election.enabled:
            raise ValueError("shards.enabled needs leader_election.enabled: Leases say which replica owns which nodes")
        return self
