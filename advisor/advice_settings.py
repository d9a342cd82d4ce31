"""Settings of the advisor: `advise`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from base.setting_group import Duration, SettingGroup
from kube.leader_election.lease_options import LeaseOptions
from placement.decisions.decision_settings import DecisionOptions
from profiles.schedule_settings import ScheduleSettings
from scheduler.loop_settings import GangOptions, PreemptionOptions, RepairOptions
from serving.server_settings import ServingOptions
from tenants.tenant_settings import TenantOptions


class AdviseLease(LeaseOptions):
    """Which of several replicas advises. The webhook holds new pods only while this Lease is renewed. It is shorter
    than that of the loops: the next replica leads within 5 s after a crash."""

    duration: Duration = Field(default=4, ge=1)
    renew_deadline: Duration = Field(default=3, gt=0)
    retry_period: Duration = Field(default=0.5, gt=0)

    name: str = Field(default="forecast-scheduler-advisor", min_length=1)
    """Name of the Lease: the same for all replicas and for the webhook."""


class PreferOptions(SettingGroup):
    """Pods that prefer nodes instead of being held."""

    nodes: int = Field(default=16, ge=1, le=100)
    """Nodes that a pod prefers, at most: each costs it a term of preferred node affinity. kube-scheduler looks at a
    part of a large cluster only, and some of them should be in it."""

    charge: Duration = Field(default=5, gt=0, le=60)
    """A pod that was asked about and never comes, because it was refused after all, is reckoned with for this time."""


class AdviseServing(ServingOptions):
    """Where `advise` listens, and who may ask."""

    group: ClassVar[str] = "advise.serving"

    port: int = Field(default=8890, ge=0, le=65_535)


class AdviseOptions(SettingGroup):
    """How `advise` runs (docs/use/advisor.md). It has its scorer inside: the settings under `scorer` count, too, but
    for serving."""

    serving: AdviseServing = Field(default_factory=AdviseServing)

    scheduler_name: str = Field(default="default-scheduler", min_length=1)
    """schedulerName of the kube-scheduler that is advised; `--scheduler-name`."""

    domain: str = ""
    """Pods are only advised to nodes whose label forecast-scheduler.io/domain says this; empty: to those without it."""

    shadow: bool = False
    """Decide about pods that ask for advice, compare with what kube-scheduler does, and write nothing; `--shadow`."""

    gate_timeout: Duration = Field(default=20, gt=0, le=60)
    """The longest time for which our gate alone holds a pod. After it any replica, or the webhook, releases the pod
    without advice. While nothing is decided the advisor holds pods for 5 s only (docs/use/advisor.md)."""

    follow_timeout: Duration = Field(default=10, gt=0, le=300)
    """A pod that is not bound so long after its advice is looked at: if kube-scheduler found no place for it, the
    nomination is withdrawn."""

    decisions: DecisionOptions = Field(default_factory=DecisionOptions)

    score_per_point: float = Field(default=0.05, gt=0, le=100)
    """With the default weights: percent of a node's capacity that counts 10 points in kube-scheduler's scores."""

    gather: Duration = Field(default=0.02, ge=0, le=1)
    """Time for which pods that come one after the other are gathered and decided about together."""

    requests_in_flight: int = Field(default=32, ge=1, le=4096)
    """Pods whose advice is being written at once. Those behind them are decided about when their turn comes."""

    prefer: PreferOptions = Field(default_factory=PreferOptions)
    tenants: TenantOptions = Field(default_factory=TenantOptions)
    leader_election: AdviseLease = Field(default_factory=AdviseLease)

    @field_validator("scheduler_name")
    @classmethod
    def _not_ours(cls, name: str) -> str:
        if name == ScheduleSettings.model_fields["scheduler_name"].default:
            raise ValueError("this is the name of our own loops, which need no advice: name a kube-scheduler")
        return name

    def loop_settings(self) -> ScheduleSettings:
        """Return the settings of the loop that decides. Making room, gangs and repairs are kube-scheduler's matter."""
        return ScheduleSettings(
            scheduler_name=self.scheduler_name,
            domain=self.domain,
            decisions=self.decisions,
            batch=self.requests_in_flight,
            score_per_point=self.score_per_point,
            gather=self.gather,
            bindings_in_flight=self.requests_in_flight,
            binding_timeout=self.gate_timeout,
            assume_timeout=self.follow_timeout,
            gangs=GangOptions(enabled=False),
            preemption=PreemptionOptions(enabled=False),
            repair=RepairOptions(enabled=False),
            tenants=self.tenants,
            # While it is renewed the webhook holds pods, which a shadow never releases.
            leader_election=self.leader_election.replace(enabled=self.leader_election.enabled and not self.shadow),
        )
