"""Settings of the advisor: `advise`."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field, field_validator

from base.setting_group import Duration, SettingGroup
from kube.leader_election.lease_options import LeaseOptions
from placement.decisions.decision_settings import DecisionOptions
from profiles.schedule_settings import ScheduleSettings
from scheduler.loop_settings import GangOptions, PreemptionOptions, RepairOptions
from serving.server_settings import ServingOptions
from tenants.tenant_settings import TenantOptions

GATE_SECONDS: Final = 20.0
FOLLOW_SECONDS: Final = 10.0


class AdviseLease(LeaseOptions):
    """Which of several replicas advises. The webhook holds new pods only while this Lease is renewed. It is shorter
    than that of the loops: the next replica leads within 5 s after a crash."""

    duration: Duration = Field(default=4, ge=1)
    renew_deadline: Duration = Field(default=3, gt=0)
    retry_period: Duration = Field(default=0.5, gt=0)

    name: str = Field(default="forecast-scheduler-advisor", min_length=1)
    """Name of the Lease, which the webhook reads, too."""


class AdvisedLoop(ScheduleSettings):
    """The loop that decides for the advisor. Making room, gangs and repairs are kube-scheduler's matter."""

    score_per_point: ClassVar[float] = 0.05
    """A quarter of that of our own loops: users ask for advice because they want the forecast to decide."""

    gather: ClassVar[float] = 0.02
    """Less than that of our own loops: kube-scheduler waits for the advice."""

    batch: ClassVar[int] = 32
    """As many as `bindings_in_flight`: those behind them are decided about when their turn comes."""

    bindings_in_flight: ClassVar[int] = 32
    """Pods whose advice is being written at once."""

    binding_timeout: ClassVar[float] = GATE_SECONDS
    """Advice that is not written when the gate is removed comes too late."""

    assume_timeout: ClassVar[float] = FOLLOW_SECONDS
    """A pod that is not bound by then is looked at: its nomination may be withdrawn."""


class AdviseServing(ServingOptions):
    """Where `advise` listens, and who may ask."""

    group: ClassVar[str] = "advise.serving"

    port: int = Field(default=8890, ge=0, le=65_535)


class AdviseOptions(SettingGroup):
    """How `advise` runs (docs/use/advisor.md)."""

    serving: AdviseServing = Field(default_factory=AdviseServing)

    scheduler_name: str = Field(default="default-scheduler", min_length=1)
    """schedulerName of the kube-scheduler that is advised; `--scheduler-name`."""

    domain: str = ""
    """Pods are only advised to nodes whose label forecast-scheduler.io/domain says this; empty: to those without it."""

    shadow: bool = False
    """Decide about pods that ask for advice, compare with what kube-scheduler does, and write nothing; `--shadow`."""

    gate_timeout: ClassVar[float] = GATE_SECONDS
    """Longest time in seconds for which our gate alone holds a pod: what users may have to wait in a burst. After it
    any replica, or the webhook, releases the pod without advice. While nothing is decided the advisor holds pods for
    5 s only (docs/use/advisor.md)."""

    follow_timeout: ClassVar[float] = FOLLOW_SECONDS
    """Seconds from the advice until a pod that is not bound is looked at. If kube-scheduler found no place for it, the
    nomination is withdrawn. By its back-off it has tried the pod three times by then."""

    decisions: DecisionOptions = Field(default_factory=DecisionOptions)

    tenants: TenantOptions = Field(default_factory=TenantOptions)
    leader_election: AdviseLease = Field(default_factory=AdviseLease)

    @field_validator("scheduler_name")
    @classmethod
    def _not_ours(cls, name: str) -> str:
        if name == ScheduleSettings.model_fields["scheduler_name"].default:
            raise ValueError("this is the name of our own loops, which need no advice: name a kube-scheduler")
        return name

    def loop_settings(self) -> ScheduleSettings:
        """Return the settings of the loop that decides."""
        return AdvisedLoop(
            scheduler_name=self.scheduler_name,
            domain=self.domain,
            decisions=self.decisions,
            gangs=GangOptions(enabled=False),
            preemption=PreemptionOptions(enabled=False),
            repair=RepairOptions(enabled=False),
            tenants=self.tenants,
            # While it is renewed the webhook holds pods, which a shadow never releases.
            leader_election=self.leader_election.replace(enabled=self.leader_election.enabled and not self.shadow),
        )
