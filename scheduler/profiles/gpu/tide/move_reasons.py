"""Why a move is made, in a sentence: whose demand rises, when, by how many GPUs, and how long draining takes."""

from __future__ import annotations

from datetime import datetime, tzinfo

from scheduler.profiles.gpu.tide.demand import Demand
from scheduler.profiles.gpu.tide.tide_plan import Kind, Move

_VERBS = {
    Kind.SHRINK: "shrinks",
    Kind.TAKE: "stops as a whole,",
    Kind.RESUME: "begins again,",
    Kind.GROW: "grows",
}


def reason(move: Move, demand: Demand, zone: tzinfo) -> str:
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


def _now(demand: Demand, pool: int, free: float) -> str:
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
