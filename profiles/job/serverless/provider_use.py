"""What pods of ours use of a provider, how many more like one it may take, and which provider gets the next of them.

Requests are counted in whole units, milli-cores and bytes, so that what came and went adds up to nothing.

Pod by pod it is the one with the fewest pods for its weight that has room (the method of Sainte-Lague, here with the
pods that sit as votes given already): with room everywhere, shares are those of the weights within one pod. Of equal
ones the cheapest for such a pod, then the first listed. What sits counts, not what was given: a provider whose pods
take longer gets fewer of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Final

from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.virtual_node_settings import Provider

NO_LIMIT: Final = 2**31 - 1
_MILLI: Final = 1000.0
_GIB: Final = 2.0**30

_SLACK: Final = 1e-9
"""Relative: prices are no whole numbers."""


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """Milli-cores and bytes that a pod requests."""

    cpu: int
    memory: int


def wanted_by(pod: PodInfo) -> ProviderRequest:
    """What it says; containers without a request want nothing."""
    return wanted_of(pod.requests)


def wanted_of(requests: Mapping[str, float]) -> ProviderRequest:
    """By resource name, base units."""
    return ProviderRequest(
        request_units("cpu", requests.get("cpu", 0.0)), request_units("memory", requests.get("memory", 0.0))
    )


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

    def add(self, wanted: ProviderRequest) -> None:
        """A pod sits there."""
        self.pods, self.cpu, self.memory = self.pods + 1, self.cpu + wanted.cpu, self.memory + wanted.memory

    def remove(self, wanted: ProviderRequest) -> None:
        """It does not any more."""
        self.pods, self.cpu, self.memory = self.pods - 1, self.cpu - wanted.cpu, self.memory - wanted.memory

    @property
    def spend_per_hour(self) -> float:
        """What the pods that sit there cost in an hour."""
        return self._cost(self.cpu, self.memory)

    def cost_per_hour(self, wanted: ProviderRequest) -> float:
        """What such a pod costs."""
        return self._cost(wanted.cpu, wanted.memory)

    def limit(self, wanted: ProviderRequest) -> Limit:
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

    def _affordable(self, wanted: ProviderRequest) -> int:
        most = (self.provider.most_spend_per_hour or 0.0) * (1.0 + _SLACK)
        return int(max(0.0, min((most - self.spend_per_hour) / self.cost_per_hour(wanted), float(NO_LIMIT))))

    def _cost(self, cpu: int, memory: int) -> float:
        of = self.provider
        return of.price_cpu_hour * cpu / _MILLI + of.price_memory_gib_hour * memory / _GIB


# Which provider gets the next of some like pods, and how many in a row.
#
# Pod by pod it is the one with the fewest pods for its weight that has room (the method of Sainte-Lague, here with the
# pods that sit as votes given already): with room everywhere, shares are those of the weights within one pod. Of equal
# ones the cheapest for such a pod, then the first listed. What sits counts, not what was given: a provider whose pods
# take longer gets fewer of them.


@dataclass(frozen=True, slots=True)
class Offer:
    """weight: > 0; pods: bound there; room: for more pods, at least 1; cost: of one such pod."""

    weight: float
    pods: int
    room: int
    cost: float = 0.0


def next_share(offers: Sequence[Offer], n_pods: int) -> tuple[int, int]:
    """Index of the provider of the first pod, and how many of `n_pods` it gets in all.

    They may be given to it at once: who asks again for the rest, with these counted, gets the shares of the others.
    """
    if len(offers) == 1:
        return 0, max(1, min(n_pods, offers[0].room))
    given = [0] * len(offers)

    def rank(at: int) -> tuple[float, float, int]:
        one = offers[at]
        return (one.pods + given[at] + 0.5) / one.weight, one.cost, at

    heap = [rank(at) for at in range(len(offers)) if offers[at].room > 0]
    heapify(heap)
    first = heap[0][2]
    for _ in range(n_pods):
        at = heap[0][2]
        given[at] += 1
        if given[at] < offers[at].room:
            heapreplace(heap, rank(at))
            continue
        heapreplace(heap, (float("inf"), 0.0, at))
        if heap[0][0] == float("inf"):
            break
    return first, given[first]
