"""The report of the tide: its whole last plan, and the reason of each move in a sentence. Times in unix seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from base.arrays import Floats
from profiles.gpu.tide.gpu_demand import TideDemand
from profiles.gpu.tide.tide_plan import MoveKind, TideMove, Training

_VERBS = {
    MoveKind.SHRINK: "shrinks",
    MoveKind.TAKE: "stops as a whole,",
    MoveKind.RESUME: "begins again,",
    MoveKind.GROW: "grows",
}


@dataclass(frozen=True, slots=True)
class ReportedMove:
    """why: a sentence; outcome: what became of it, '' = nothing yet."""

    move: TideMove
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
    demand: TideDemand | None = None
    training: Floats | None = None
    others: Floats | None = None
    levels: Floats | None = None
    trainings: Sequence[ReportedTraining] = ()
    moves: Sequence[ReportedMove] = ()
    ahead: Sequence[ReportedMove] = ()
    failures: Mapping[str, str] = field(default_factory=dict)


NO_REPORT = TideReport(0.0, no_forecast_because="nothing has been planned yet")


def reason(move: TideMove, demand: TideDemand, zone: tzinfo) -> str:
    """For people; times are local."""
    what = f"{_VERBS[move.kind]} from {move.before} to {move.after} replicas ({_gpus(move.gpus)})"
    pool, slot = move.training.pool, move.tightest
    if move.after > move.before:
        least = _clock(float(demand.starts[slot]), move.at, zone)
        when = "now and" if slot == 0 else f"at {least} the least, but"
        return f"{what}: inference is predicted to leave {_gpus(move.free)} to training, {when} long enough"
    cap = "; this is beyond the day's moves, which shrinking for inference may be" if move.beyond_cap else ""
    drain = f"draining takes {_long(move.training.lead)}"
    if slot == 0:
        return f"{what} at once: {_now(demand, pool, move.free)}; {drain}{cap}"
    rise = demand.by_service[:, pool, slot] - demand.by_service[:, pool, 0]  # (n_services,)
    when = _clock(float(demand.starts[slot]), move.at, zone)
    need = f"inference is predicted to need {_gpus(float(demand.need[pool, slot]))} of {demand.capacity[pool]:g}"
    by = ""
    if len(rise) and rise.max() > 0.05:
        by = f", {demand.services[int(rise.argmax())]} {float(rise.max()):.1f} more than now"
    return f"{what}: by {when} {need}{by}; {drain}{cap}"


def _now(demand: TideDemand, pool: int, free: float) -> str:
    if demand.waiting[pool] > 0:
        return f"pods of {demand.waits[pool]} wait for {_gpus(float(demand.waiting[pool]))} now"
    need = f"{_gpus(float(demand.need[pool, 0]))} of {demand.capacity[pool]:g}"
    return f"inference needs {need} now, {_gpus(free)} are left to training"


def _gpus(amount: float) -> str:
    return f"{amount:g} GPU" if amount == 1 else f"{amount:g} GPUs"


def _clock(moment: float, now: float, zone: tzinfo) -> str:
    local, today = datetime.fromtimestamp(moment, zone), datetime.fromtimestamp(now, zone)
    return f"{local:%H:%M}" if local.date() == today.date() else f"{local:%a %H:%M}"


def _long(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
