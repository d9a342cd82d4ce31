"""Settings of the tide between inference and training."""

from __future__ import annotations

from dataclasses import dataclass

from forecast.errors import InputError
from placement.limits import within

__all__ = ["TideOptions"]


@dataclass(frozen=True, slots=True)
class TideOptions:
    """
    dry_run       : decide and tell, write nothing
    every         : seconds between looks
    margin        : share by which all inference together may need more than is forecast
    spread        : share by which each service may err on its own; services' errors add as their squares do
    reserve_gpus  : GPUs of each pool that are left to inference besides
    half_life     : seconds in which half of what inference has beyond its forecast now is forgotten
    notice        : seconds beside the checkpoint grace until drained GPUs are free and inference has started on them
    grace         : seconds that a training takes to write its checkpoint, where it does not say
    dwell         : seconds that a training keeps what it was given: it grows only into room that lasts so long, and
                    one that shrinks shrinks by what it would have to give up in that time
    dead_band     : GPUs; a training that would grow by less, and not to its full size, does not
    moves_per_job : a local day; growing stops one move short of it, which is kept for shrinking. Shrinking for
                    inference is never refused
    moves_per_day : the same of all trainings together
    take_whole    : trainings that cannot shrink any further are stopped as a whole where inference needs their GPUs
    preview_hours : so far ahead moves are shown; demand is for a week
    blind_margin  : without a usable forecast no training pod is placed into the last GPUs: this share of what
                    inference has is left free
    pool_label    : node label by whose values pools are divided further than by card model; '' = they are not
    kinds         : further workloads that may be scaled, group/version/plural, found by the label of the tide
    """

    dry_run: bool = False
    every: float = 30.0
    margin: float = 0.02
    spread: float = 0.05
    reserve_gpus: float = 0.0
    half_life: float = 6 * 3600.0
    notice: float = 60.0
    grace: float = 300.0
    dwell: float = 7200.0
    dead_band: float = 2.0
    moves_per_job: int = 12
    moves_per_day: int = 500
    take_whole: bool = True
    preview_hours: float = 24.0
    blind_margin: float = 0.1
    pool_label: str = ""
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        within("every", self.every, 1.0, 600.0)
        within("margin", self.margin, 0.0, 2.0)
        within("spread", self.spread, 0.0, 2.0)
        within("reserve_gpus", self.reserve_gpus, 0.0, 1e6)
        within("half_life", self.half_life, 60.0, 7 * 86_400.0)
        within("notice", self.notice, 0.0, 3600.0)
        within("grace", self.grace, 0.0, 86_400.0)
        within("dwell", self.dwell, 0.0, 86_400.0)
        within("dead_band", self.dead_band, 0.0, 1e6)
        within("moves_per_job", self.moves_per_job, 0, 1e6)
        within("moves_per_day", self.moves_per_day, 0, 1e9)
        within("preview_hours", self.preview_hours, 1.0, 168.0)
        within("blind_margin", self.blind_margin, 0.0, 2.0)
        for kind in self.kinds:
            if kind.count("/") != 2 or not all(kind.split("/")):
                raise InputError(f"kinds names {kind!r}: write group/version/plural, such as kubeflow.org/v1/mpijobs")

    def lead(self, grace: float | None) -> float:
        """Seconds from when a training is to shrink until its GPUs are free: it may be seen one look late. grace: as it
        says; None = it does not."""
        return (self.grace if grace is None else grace) + self.notice + self.every
