"""The report of the tide: its whole last plan. Times in unix seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from base.arrays import Floats
from scheduler.profiles.gpu.tide.demand import Demand
from scheduler.profiles.gpu.tide.tide_plan import Move, Training


@dataclass(frozen=True, slots=True)
class ReportedMove:
    """why: a sentence; outcome: what became of it, '' = nothing yet."""

    move: Move
    why: str
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class ReportedTraining:
    """A training as the plan saw it, its moves of the day, and what of its annotations cannot be read."""

    training: Training
    moves_today: int = 0
    mistakes: str = ""


@dataclass(frozen=True, slots=True)
class TideReport:
    """
    made                : of the plan
    no_forecast_because : '' = there is one
    writes              : whether moves are carried out, else why not
    training, others    : (n_pools,) GPUs that are held
    levels              : (n_pools, n_previewed) GPUs of training half hour by half hour
    moves               : the latest that were made, newest first
    ahead               : planned, if all comes as forecast
    failures            : workloads that could not be read, and why
    """

    made: float
    no_forecast_because: str = ""
    writes: str = ""
    pools: Sequence[str] = ()
    demand: Demand | None = None
    training: Floats | None = None
    others: Floats | None = None
    levels: Floats | None = None
    trainings: Sequence[ReportedTraining] = ()
    moves: Sequence[ReportedMove] = ()
    ahead: Sequence[ReportedMove] = ()
    failures: Mapping[str, str] = field(default_factory=dict)


NO_REPORT = TideReport(0.0, no_forecast_because="nothing has been planned yet")
