"""Settings of storms and of the room that is kept for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["StormOptions"]


@dataclass(frozen=True, slots=True)
class StormOptions:
    """
    reserve   : keep room; else storms are only foreseen
    threshold : pods per minute, beyond what comes steadily, that make a storm
    lead      : seconds before a storm from which room is kept
    grace     : seconds after the storm's last minute began until which it is kept at most
    most_room : share of the room that is free of which a storm's may be made at most
    zone      : of CronJobs that name none: that of the kube-controller-manager; '' = UTC

    Raises InputError.
    """

    reserve: bool = True
    threshold: int = 50
    lead: float = 300.0
    grace: float = 120.0
    most_room: float = 0.5
    zone: str = ""

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise InputError(f"threshold is {self.threshold}: a storm needs at least 1 pod per minute")
        for name, value in (("lead", self.lead), ("grace", self.grace)):
            if not (math.isfinite(value) and 0 <= value <= 86_400):
                raise InputError(f"{name} is {value}: it must be from 0 s to a day")
        if not 0 < self.most_room <= 1:
            raise InputError(f"most_room is {self.most_room}: it is a share of what is free, above 0, at most 1")
