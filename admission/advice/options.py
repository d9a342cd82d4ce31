"""Settings of advice at admission: `webhook.advice`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from placement.advice_gate import AdviceMode
from serving.remote_options import RemoteServiceOptions


class AdvisorOptions(RemoteServiceOptions):
    """Where the advisor is asked which nodes a pod prefers. Only pods of the mode `prefer` need it."""

    url: str | None = None
    """For instance http://forecast-scheduler-advisor.forecast-scheduler:8890. None: pods prefer nothing."""

    timeout: Duration = Field(default=0.3, gt=0, le=5)
    """A pod about which there is no answer by then is created without preferences."""


class AdviceGateOptions(SettingGroup):
    """Which new pods are held for the advisor, or prefer nodes (docs/use/advisor.md). The label
    forecast-scheduler.io/advice of a pod or its namespace asks for it: `advise`, `prefer` or `off`."""

    enabled: bool = True
    """Hold pods that ask for it, or let them prefer nodes, while an advisor is alive: without one, nothing is done."""

    unlabelled: AdviceMode = AdviceMode.OFF
    """What pods ask for that have no such label, nor has their namespace."""

    scheduler_names: list[str] = Field(default_factory=lambda: ["default-scheduler"], min_length=1)
    """schedulerNames of the kube-scheduler that is advised; pods of others are left alone."""

    excluded_namespaces: list[str] = Field(default_factory=lambda: ["forecast-scheduler"])
    """Namespaces whose pods are left alone, in addition to kube-system, kube-public and kube-node-lease."""

    lease_namespace: str = Field(default="forecast-scheduler", min_length=1)
    """Namespace of the advisor's Lease."""

    lease_name: str = Field(default="forecast-scheduler-advisor", min_length=1)
    """Name of the advisor's Lease."""

    alive_for: Duration = Field(default=2, ge=1, le=60)
    """An advisor that has not renewed its Lease for this time counts as dead: new pods are not held. It renews it twice
    a second."""

    advisor: AdvisorOptions = Field(default_factory=AdvisorOptions)
