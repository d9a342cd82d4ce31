"""Settings of leader election, and of the Lease that says who leads."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from base.setting_group import Duration, SettingGroup


class LeaderElectionOptions(SettingGroup):
    """Which of several replicas writes: the one that holds a Lease of coordination.k8s.io. A command that differs has
    the same keys under COMMAND.leader_election.

    The times are shorter than client-go's 15, 10 and 2 s: another replica takes over within 15 s of a kill, the time
    that it waits for bindings of the killed one included.
    """

    enabled: bool = True
    """Write only with the Lease. If false, only one replica may run; `--leader-elect`."""

    namespace: str = Field(default="forecast-scheduler", min_length=1)
    """Namespace of the Leases."""

    duration: Duration = Field(default=10, ge=1)
    """Age at which another replica takes over the Lease. Whole seconds, above `renew_deadline`."""

    renew_deadline: Duration = Field(default=7, gt=0)
    """Age at which the leader stops writing. Above 1.2 times `retry_period`."""

    retry_period: Duration = Field(default=1, gt=0)
    """Time between two tries to take or renew the Lease."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.duration != round(self.duration):
            raise ValueError("duration must be whole seconds")
        if not self.retry_period * 1.2 < self.renew_deadline < self.duration:
            raise ValueError(
                f"a lease with a duration of {self.duration:g} s, a renew_deadline of {self.renew_deadline:g} s and a "
                f"retry_period of {self.retry_period:g} s protects nothing: duration must be above renew_deadline, "
                "and renew_deadline above 1.2 times retry_period"
            )
        return self


class LeaseOptions(LeaderElectionOptions):
    """Leader election by one Lease."""

    name: str = Field(default="forecast-scheduler", min_length=1)
    """Name of the Lease; another one for other scheduler names."""
