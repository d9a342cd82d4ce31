"""What can be set about gangs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["GangOptions"]


@dataclass(frozen=True, slots=True)
class GangOptions:
    """Seconds.

    schedule_timeout : from the first failed attempt of a complete group until others go first; of groups that have no
                       scheduleTimeoutSeconds. 60 as in scheduler-plugins
    pause            : in which a group that is past it is not tried
    """

    schedule_timeout: float = 60.0
    pause: float = 60.0

    def __post_init__(self) -> None:
        for name in ("schedule_timeout", "pause"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} of gangs is {value} s: it must be 0 or above")
