"""Providers of virtual nodes and what may be used of each; the settings say the same under schedule.job.serverless."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from forecast.errors import InputError

__all__ = [
    "OTHER",
    "PROVIDER_TAINT",
    "VIRTUAL_LABEL",
    "First",
    "Provider",
    "ServerlessOptions",
]

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


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, and what pods of ours may use of it at once; None = as much as there is.

    labels                : of its nodes; none: those whose taint PROVIDER_TAINT has its name
    most_pods             : that sit there
    most_cpu, most_memory : cores and bytes that they request
    most_starting         : bound, or about to be, and not started
    price_cpu_hour, price_memory_gib_hour : of what is requested
    most_spend_per_hour   : by these prices, of all pods that sit there
    weight                : its share of the pods, of those providers that have room
    start_timeout         : seconds after which a pod that has not started is taken back
    backoff_initial, backoff_longest : seconds without pods after a failure; twice as long with every further one

    Raises InputError.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    most_pods: int | None = None
    most_cpu: float | None = None
    most_memory: float | None = None
    most_starting: int | None = None
    price_cpu_hour: float = 0.0
    price_memory_gib_hour: float = 0.0
    most_spend_per_hour: float | None = None
    weight: float = 1.0
    start_timeout: float = 300.0
    backoff_initial: float = 30.0
    backoff_longest: float = 600.0

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise InputError(f"the weight of provider {self.name!r} is {self.weight}: make it more than 0")
        if not 0 < self.backoff_initial <= self.backoff_longest:
            raise InputError(
                f"provider {self.name!r} backs off for {self.backoff_initial} s at first and for "
                f"{self.backoff_longest} s at most: the first must be more than 0 and no more than the second"
            )
        if not self.start_timeout > 0:
            raise InputError(f"start_timeout of provider {self.name!r} is {self.start_timeout}: make it more than 0")


@dataclass(frozen=True, slots=True)
class ServerlessOptions:
    """
    providers : the first that claims a node has it; virtual nodes that nobody claims are those of the provider OTHER,
                which has no limits unless it is listed
    taints    : keys of taints that providers put on their nodes to keep pods away that do not mean them; a node with
                one is virtual
    tolerate  : pods that may leave the cluster need not tolerate these

    Raises InputError.
    """

    first: First = First.SERVERLESS
    providers: tuple[Provider, ...] = ()
    taints: tuple[str, ...] = (PROVIDER_TAINT,)
    tolerate: bool = True

    def __post_init__(self) -> None:
        names = [provider.name for provider in self.providers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"provider {twice[0]!r} is given twice: each provider has a name of its own")

    def all_providers(self) -> tuple[Provider, ...]:
        """Those listed, and OTHER."""
        if any(provider.name == OTHER for provider in self.providers):
            return self.providers
        return (*self.providers, Provider(OTHER))
