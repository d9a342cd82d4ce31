"""How far owners who share a queue are served: the one of the lowest level goes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kube.objects.objects import PodInfo
from scheduler.quota_queues.owner_shares import Shares, dominant, pods_to_level
from scheduler.quota_queues.queue_of import QueueOwner
from scheduler.quota_queues.quota_queue_settings import PodQueue

Level = tuple[float, ...]
"""Compared from the first number on: of what stands at the top, then of what is below it."""


@dataclass(frozen=True, slots=True)
class KnownFlow:
    """What its name says. lane: name of the queue with '/', or the flow's own; weight: of the owner."""

    lane: str
    queue: PodQueue | None
    member: QueueOwner
    weight: float


class Levels(Protocol):
    """Of the owners of one queue. Called under the lock of the queue."""

    def level(self, flow: KnownFlow, pod: PodInfo) -> Level:
        """Return the level of the owner as it is now. pod: that would go next of its pods."""

    def to_level(self, flow: KnownFlow, pod: PodInfo, level: Level) -> tuple[float, float]:
        """Return the share that one such pod takes, 0 = of nothing that counts, and how many bring the owner level."""


class OwnerLevels:
    """Of owners in a DRF queue: dominant shares of the cluster by weight."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    def level(self, flow: KnownFlow, pod: PodInfo) -> Level:
        """Return the dominant share / weight, whatever the pod."""
        share, _ = dominant(self._shares.held(flow.member).amounts, self._shares.total)
        return (share / flow.weight,)

    def to_level(self, flow: KnownFlow, pod: PodInfo, level: Level) -> tuple[float, float]:
        """See the protocol Levels."""
        shares, total = self._shares, self._shares.total
        demand = shares.demand(pod)
        one, _ = dominant(demand, total)
        if not one:
            return 0.0, 0.0
        return one, pods_to_level(shares.held(flow.member).amounts, demand, total, level[0] * flow.weight)
