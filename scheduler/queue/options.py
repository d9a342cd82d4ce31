"""How long pods wait in the parts of the queue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["QueueOptions"]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Seconds, with kube-scheduler's defaults.

    initial_backoff       : after the first attempt; doubles with each further one. 0 = no backoff
    longest_backoff       : where doubling ends
    longest_unschedulable : a pod that no event woke is tried again after that
    most_events           : remembered for pods in flight; a pod that was longer in flight is tried again in any case
    """

    initial_backoff: float = 1.0
    longest_backoff: float = 10.0
    longest_unschedulable: float = 300.0
    most_events: int = 10_000

    def __post_init__(self) -> None:
        if not (math.isfinite(self.initial_backoff) and self.initial_backoff >= 0):
            raise InputError(f"initial_backoff is {self.initial_backoff} s: it must be 0 or above")
        if not (math.isfinite(self.longest_backoff) and self.longest_backoff >= self.initial_backoff):
            raise InputError(
                f"longest_backoff is {self.longest_backoff} s: it must be at least initial_backoff, "
                f"which is {self.initial_backoff} s"
            )
        if not (math.isfinite(self.longest_unschedulable) and self.longest_unschedulable > 0):
            raise InputError(f"longest_unschedulable is {self.longest_unschedulable} s: it must be above 0")
        if self.most_events < 1:
            raise InputError(f"most_events is {self.most_events}: it must be above 0")
