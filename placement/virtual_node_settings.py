"""Settings of virtual nodes: `schedule.job.serverless`. What may be used of each provider."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Final, Self

from pydantic import Field, model_validator

from base.setting_group import Duration, SettingGroup, check_names

PROVIDER_TAINT: Final = "virtual-kubelet.io/provider"
"""What virtual-kubelet and its descendants taint their node with; the value is the provider's name."""

VIRTUAL_LABEL: Final = ("type", "virtual-kubelet")
"""Label of their nodes."""

OTHER: Final = "other"
"""Name of the provider of virtual nodes that no other one claims."""


class First(Enum):
    """Which nodes come first; the others take what is left over."""

    SERVERLESS = "serverless"
    CLUSTER = "cluster"
    NEVER = "never"  # virtual nodes are not used at all


class Provider(SettingGroup):
    """One provider of virtual nodes, and what pods of the job profile may use of it at once. Limits that are left out
    do not limit."""

    name: str = Field(min_length=1, max_length=63)
    """Value of the taint virtual-kubelet.io/provider of its nodes."""

    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of its nodes. Empty: its nodes are those with the taint."""

    most_pods: int | None = Field(default=None, ge=0)
    """Pods of the job profile that sit there."""

    most_cpu: float | None = Field(default=None, ge=0)
    """Cores that these pods request."""

    most_memory: float | None = Field(default=None, ge=0)
    """GiB that these pods request."""

    most_starting: int | None = Field(default=None, ge=1)
    """Pods that are assumed or bound there and have not started."""

    price_cpu_hour: float = Field(default=0, ge=0)
    """Price of a core for an hour."""

    price_memory_gib_hour: float = Field(default=0, ge=0)
    """Price of a GiB of memory for an hour."""

    most_spend_per_hour: float | None = Field(default=None, ge=0)
    """What all these pods may cost per hour, by these prices and what they request."""

    weight: float = Field(default=1, gt=0)
    """Its share of the pods among the providers with room."""

    start_timeout: Duration = Field(default=300, gt=0)
    """A pod that has not started after this time is taken back."""

    backoff_initial: ClassVar[float] = 30.0
    """Seconds without pods after a failure; twice as long after every further one."""

    backoff_longest: ClassVar[float] = 600.0
    """Seconds where doubling ends."""

    @property
    def most_memory_bytes(self) -> float | None:
        """most_memory, as nodes and pods count it."""
        return None if self.most_memory is None else self.most_memory * 2.0**30


class ServerlessOptions(SettingGroup):
    """Which pods go to virtual nodes, and how much of each provider they may use (docs/use/jobs.md)."""

    first: First = First.SERVERLESS
    """Nodes that come first; the others take what is left over. never: virtual nodes are not used at all."""

    tolerate: bool = True
    """Pods that may leave the cluster need not tolerate the `taints`."""

    taints: tuple[str, ...] = (PROVIDER_TAINT,)
    """Keys of taints that providers put on their nodes. A node with one of them is virtual."""

    providers: tuple[Provider, ...] = ()
    """Providers with their quotas. Virtual nodes that no listed provider claims belong to `other`, which has no limits
    unless it is listed."""

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        check_names("provider", [one.name for one in self.providers])
        return self

    def all_providers(self) -> tuple[Provider, ...]:
        """Those listed, and OTHER."""
        if any(provider.name == OTHER for provider in self.providers):
            return self.providers
        return (*self.providers, Provider(name=OTHER))
