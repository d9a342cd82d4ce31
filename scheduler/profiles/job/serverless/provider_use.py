"""What pods of ours use of a provider, and how many more like one it may take.

Requests are counted in whole units, milli-cores and bytes, so that what came and went adds up to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.virtual_nodes.options import Provider

NO_LIMIT: Final = 2**31 - 1

_MILLI: Final = 1000.0
_GIB: Final = 2.0**30
_SLACK: Final = 1e-9
"""Relative: prices are no whole numbers."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Milli-cores and bytes that a pod requests."""

    cpu: int
    memory: int


def wanted_by(pod: PodInfo) -> Wanted:
    """What it says; containers without a request want nothing."""
    return wanted_of(pod.requests)


def wanted_of(requests: Mapping[str, float]) -> Wanted:
    """By resource name, base units."""
    return Wanted(request_units("cpu", requests.get("cpu", 0.0)), request_units("memory", requests.get("memory", 0.0)))


@dataclass(frozen=True, slots=True)
class Limit:
    """How many more pods, and what keeps it from being one more; '' = nothing does."""

    room: int
    reason: str = ""


@dataclass(slots=True)
class ProviderUse:
    """starting: UIDs of pods that are assumed or bound there and have not started, with unix seconds since when."""

    provider: Provider
    pods: int = 0
    cpu: int = 0
    memory: int = 0
    starting: dict[str, float] = field(default_factory=dict)

    def add(self, wanted: Wanted) -> None:
        """A pod sits there."""
        self.pods, self.cpu, self.memory = self.pods + 1, self.cpu + wanted.cpu, self.memory + wanted.memory

    def remove(self, wanted: Wanted) -> None:
        """It does not any more."""
        self.pods, self.cpu, self.memory = self.pods - 1, self.cpu - wanted.cpu, self.memory - wanted.memory

    @property
    def spend_per_hour(self) -> float:
        """What the pods that sit there cost in an hour."""
        return self._cost(self.cpu, self.memory)

    def cost_per_hour(self, wanted: Wanted) -> float:
        """What such a pod costs."""
        return self._cost(wanted.cpu, wanted.memory)

    def limit(self, wanted: Wanted) -> Limit:
        """For how many more pods there is quota; reasons go on from "node(s) of provider ..."."""
        of, limits = self.provider, []
        if of.most_pods is not None:
            limits.append(Limit(of.most_pods - self.pods, f"at its quota of {of.most_pods} pods"))
        if of.most_cpu is not None and wanted.cpu:
            left = int(of.most_cpu * _MILLI + 0.5) - self.cpu
            limits.append(Limit(left // wanted.cpu, f"at its quota of {of.most_cpu:g} cores"))
        if (most := of.most_memory_bytes) is not None and wanted.memory:
            left = int(most) - self.memory
            limits.append(Limit(left // wanted.memory, f"at its quota of {most / _GIB:g} GiB of memory"))
        if of.most_spend_per_hour is not None and self.cost_per_hour(wanted) > 0:
            limits.append(Limit(self._affordable(wanted), f"at its budget of {of.most_spend_per_hour:g} per hour"))
        if of.most_starting is not None:
            left = of.most_starting - len(self.starting)
            limits.append(Limit(left, f"starting {of.most_starting} pods, as many as it may"))
        tightest = min(limits, key=lambda one: one.room, default=Limit(NO_LIMIT))
        return Limit(max(0, tightest.room), tightest.reason)

    def _affordable(self, wanted: Wanted) -> int:
        most = (self.provider.most_spend_per_hour or 0.0) * (1.0 + _SLACK)
        return int(max(0.0, min((most - self.spend_per_hour) / self.cost_per_hour(wanted), float(NO_LIMIT))))

    def _cost(self, cpu: int, memory: int) -> float:
        of = self.provider
        return of.price_cpu_hour * cpu / _MILLI + of.price_memory_gib_hour * memory / _GIB
