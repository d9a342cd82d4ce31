"""Settings of idle cores of GPU nodes; the settings file has them under schedule.gpu.idle_cpu."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from forecast.errors import InputError

__all__ = ["IdleCpuOptions", "PlainPods"]


class PlainPods(Enum):
    """Where pods of the profile may go that ask for no GPU and are not offline."""

    APART = "apart"  # to nodes without GPUs; members of a PodGroup to all, since they belong to the work on the GPUs
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True)
class IdleCpuOptions:
    """
    priority_below : pods of a lower priority are offline without saying so
    ceiling        : share of a GPU node's CPU and memory that the upper bound of its load stays below with an offline
                     pod, above 0 to 1
    hours          : so far ahead, 1..168. Short: what comes later makes them go, see `lead_seconds`
    cores_per_gpu  : cores kept for each GPU that is idle; None = as many as pods with such cards request for each
    memory_per_gpu : bytes, the same
    plain_pods     : what becomes of other pods without GPUs
    evict          : whether offline pods are evicted when the cores are needed; else they only give way to preemption
    lead_seconds   : so long before the predicted load passes the ceiling; they need time to end
    slack          : share of the CPU by which the ceiling has to be passed before anybody is evicted, so that figures
                     that move a little evict nobody. Then it is down to the ceiling
    dry_run        : evictions are only told

    Raises InputError.
    """

    priority_below: int = 0
    ceiling: float = 0.8
    hours: int = 6
    cores_per_gpu: float | None = None
    memory_per_gpu: float | None = None
    plain_pods: PlainPods = PlainPods.APART
    evict: bool = True
    lead_seconds: float = 1800.0
    slack: float = 0.05
    dry_run: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.ceiling <= 1:
            raise InputError(f"load cannot stay below {self.ceiling!r} of a node: give more than 0, up to 1")
        if not 1 <= self.hours <= 168:
            raise InputError(f"the forecast cannot be looked at for {self.hours!r} h ahead: give 1 to 168")
        for name, amount in (("cores", self.cores_per_gpu), ("bytes", self.memory_per_gpu)):
            if amount is not None and not (math.isfinite(amount) and amount >= 0):
                raise InputError(f"{amount!r} {name} cannot be kept for an idle GPU: give 0 or more, or measure it")
        if not (0 <= self.slack < 1):
            raise InputError(f"{self.slack!r} is no share of a node's CPU that may be passed: give 0 to less than 1")
        if not (0 <= self.lead_seconds <= 3600 * self.hours):
            raise InputError(
                f"load cannot be foreseen {self.lead_seconds!r} s ahead where {self.hours} h are looked at: "
                f"give 0 to {3600 * self.hours}"
            )
