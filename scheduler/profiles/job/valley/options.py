"""Settings of valley planning and of keeping off peaks."""

from __future__ import annotations

from dataclasses import dataclass

from placement.limits import within
from scheduler.profiles.job.valley.plan import MARGIN_SECONDS

__all__ = ["ValleyOptions"]


@dataclass(frozen=True, slots=True)
class ValleyOptions:
    """
    shift         : hold jobs that say how long they may wait until the planned start
    hours         : so far ahead a start may lie
    step          : seconds, the grid of starts
    every         : seconds between plans; new jobs are planned within a second or two
    first_wait    : seconds that a job waits at most for its first plan
    margin        : seconds before its latest start at which a job is let go in any case
    reserve       : seconds by which plans stay clear of the latest start besides, in case there is no room then; at
                    most a tenth of the time that the job may wait
    least_gain    : share of the cost by which a start must be better than the one planned before, or than now, even if
                    the forecast has no error
    ceiling       : share of capacity that a node is to stay below while a job runs there
    keep_off_peak : prefer nodes that stay below, and hold jobs with slack while there is none
    """

    shift: bool = True
    hours: float = 24.0
    step: float = 300.0
    every: float = 10.0
    first_wait: float = 5.0
    margin: float = MARGIN_SECONDS
    reserve: float = 900.0
    least_gain: float = 0.05
    ceiling: float = 0.8
    keep_off_peak: bool = True

    def __post_init__(self) -> None:
        within("hours", self.hours, 1.0, 120.0)
        within("step", self.step, 60.0, 1800.0)
        within("every", self.every, 1.0, 600.0)
        within("first_wait", self.first_wait, 0.0, 300.0)
        within("reserve", self.reserve, 0.0, 21_600.0)
        within("margin", self.margin, 0.0, 3600.0)
        within("least_gain", self.least_gain, 0.0, 0.9)
        within("ceiling", self.ceiling, 0.05, 2.0)
