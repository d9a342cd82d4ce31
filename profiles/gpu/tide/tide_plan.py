"""How much training there is to be now, and in the hours ahead. Pure: situation and clock in, moves out.

    shrink   what would not be drained by the time inference needs the GPUs goes now, and what would go within `dwell`
             goes with it
    take     where even that is not enough, trainings are stopped as a whole: elastic ones first, then of the lowest
             priority, then the youngest
    resume   what was stopped begins again with its minimum, if that can stay for `dwell`
    grow     what inference leaves for `dwell` and the time to drain; the one with the fewest GPUs above its minimum
             is first

Shrinking is never refused. Growing is: without a forecast, while pods of the training wait for a node, within `dwell`
of its last move, by less than the dead band, and when the day's moves are used up but for those that shrinking needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from enum import Enum
from typing import Final

import numpy as np

from base.arrays import Floats
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import TideDemand
from profiles.gpu.tide.replica_levels import Room, Stretches, drained_in_time, filled

_MOST_LEADS: Final = 2
"""Different drain times that a preview looks at one by one; of more the shortest and the longest."""


class MoveKind(Enum):
    """Of a move."""

    SHRINK = "shrink"
    TAKE = "take"  # stopped as a whole
    RESUME = "resume"
    GROW = "grow"


@dataclass(frozen=True, slots=True)
class Training:
    """
    key      : for people, and as identity
    pool     : its number
    gpus     : of one replica
    replicas : that it is to have now
    least    : fewest replicas; one that is not elastic: its size
    most     : most replicas
    lead     : seconds from the request until its GPUs are free for inference
    taken    : it has no replicas because the tide stopped it
    waiting  : of its pods some wait for a node
    draining : GPUs that its pods still hold beyond its replicas: they are not free yet
    moved    : unix seconds of its last move
    moves    : of the day of `moved`
    """

    key: str
    pool: int
    gpus: float
    replicas: int
    least: int
    most: int
    lead: float
    priority: int = 0
    created: float = 0.0
    taken: bool = False
    waiting: bool = False
    draining: float = 0.0
    moved: float = -math.inf
    moves: int = 0

    @property
    def elastic(self) -> bool:
        """Whether it may have more or fewer replicas."""
        return self.least < self.most


@dataclass(frozen=True, slots=True)
class TideMove:
    """
    before, after : replicas
    at            : unix seconds
    tightest      : index of the half hour that decides
    free          : GPUs that training may have in it, all together
    number        : which of the training's day it is
    beyond_cap    : it is one more than the day's moves
    """

    training: Training
    kind: MoveKind
    before: int
    after: int
    at: float
    tightest: int
    free: float
    number: int = 1
    beyond_cap: bool = False

    @property
    def gpus(self) -> float:
        """That come free, or are taken."""
        return abs(self.after - self.before) * self.training.gpus


@dataclass(frozen=True, slots=True)
class PlannedTide:
    """
    moves   : to be made now
    ahead   : to be made later, if all comes as forecast
    levels  : (n_pools, n_previewed) GPUs of training after the moves of each half hour
    lacking : (n_pools,) GPUs that inference lacks though all is done that may be
    """

    moves: tuple[TideMove, ...]
    ahead: tuple[TideMove, ...]
    levels: Floats
    lacking: Floats


def decide(
    trainings: Sequence[Training], demand: TideDemand, now: float, options: TideOptions, zone: tzinfo
) -> tuple[list[TideMove], Floats]:
    """Moves to be made now, and (n_pools,) GPUs that will be lacking all the same."""
    moves: list[TideMove] = []
    lacking = np.zeros(len(demand.capacity))
    # Who owns a training can write that it was moved a million times: it cannot use up what is everybody's.
    spent = sum(min(moves_today(one, now, zone), options.moves_per_job) for one in trainings)
    for pool in range(len(demand.capacity)):
        mine = [one for one in trainings if one.pool == pool]
        if mine:
            found, lacking[pool] = _of_pool(mine, demand, pool, now, options, zone, spent)
            moves += found
            spent += len(found)
    return moves, lacking


def look_ahead(
    trainings: Sequence[Training], demand: TideDemand, now: float, options: TideOptions, zone: tzinfo
) -> PlannedTide:
    """What is to be done now, and at the beginning of the half hours to come if all comes as forecast."""
    moves, lacking = decide(trainings, demand, now, options, zone)
    by_key = {one.key: one for one in trainings}
    _carry_out(by_key, moves)
    n_slots = len(demand.starts) - 1
    n = min(n_slots, math.ceil(options.preview_hours * 2))
    levels, ahead = np.zeros((len(demand.capacity), n)), list[TideMove]()
    # A forecast has no pods that wait now.
    later = replace(demand, waiting=np.zeros_like(demand.waiting))
    for at, slot in _moments(demand, [one.lead for one in trainings], now, n):
        if at > now:
            by_key = {key: replace(one, waiting=False, draining=0.0) for key, one in by_key.items()}
            found, _ = decide(list(by_key.values()), later, at, options, zone)
            ahead += found
            _carry_out(by_key, found)
        if slot is not None:
            for one in by_key.values():
                levels[one.pool, slot] += one.replicas * one.gpus
    return PlannedTide(tuple(moves), tuple(ahead), levels, lacking)


def after_move(move: TideMove) -> Training:
    """The training as it is then."""
    return replace(move.training, replicas=move.after, moved=move.at, moves=move.number, taken=not move.after)


# Inside


def _moments(demand: TideDemand, leads: Sequence[float], now: float, n: int) -> list[tuple[float, int | None]]:
    """When to look again, in order: as half hours begin (with their number), and a drain time before that."""
    different = sorted(set(leads))
    some = different if len(different) <= _MOST_LEADS else [different[0], different[-1]]
    starts = [max(now, start) for start in demand.starts[:n].tolist()]
    before = {start - lead for start in starts for lead in some if now < start - lead < starts[-1]}
    moments: list[tuple[float, int | None]] = [(at, None) for at in before.difference(starts)]
    return sorted([*moments, *((at, slot) for slot, at in enumerate(starts))], key=lambda one: one[0])


def _of_pool(
    mine: Sequence[Training],
    demand: TideDemand,
    pool: int,
    now: float,
    options: TideOptions,
    zone: tzinfo,
    spent: int,
) -> tuple[list[TideMove], float]:
    room = _room_of(demand, pool, now)
    gpus = np.array([one.gpus for one in mine])
    leads = np.array([one.lead for one in mine])
    soon = Stretches(leads, room)
    running = [min(one.replicas, one.least) for one in mine]
    taken = _taken_whole(mine, running, soon, gpus) if options.take_whole else []
    floors = [0 if j in taken else n for j, n in enumerate(running)]
    least = np.array(floors) * gpus
    lacking = soon.lacking(least, least)
    ceilings = [floors[j] if j in taken else one.replicas for j, one in enumerate(mine)]
    must = filled(floors, drained_in_time(ceilings, floors, gpus, soon), floors, gpus, soon)
    shrinking = [j for j, one in enumerate(mine) if must[j] < one.replicas]
    if shrinking:
        lasting = [one.lead + _lasts(one, now, options, zone) for one in mine]
        deep = filled(floors, must, floors, gpus, Stretches(np.array(lasting), room))
        after = [deep[j] if j in shrinking else one.replicas for j, one in enumerate(mine)]
    elif demand.forecast:
        after = _grown(mine, must, gpus, leads, room, now, options, zone, spent)
    else:
        after = must
    moves: list[TideMove] = []
    for j, one in enumerate(mine):
        if after[j] == one.replicas:
            continue
        shrinks = after[j] < one.replicas
        kind = (
            (MoveKind.TAKE if j in taken else MoveKind.SHRINK)
            if shrinks
            else (MoveKind.RESUME if one.taken else MoveKind.GROW)
        )
        tightest, free = _tightest(demand, pool, now, one.lead + (0.0 if shrinks else options.dwell))
        number = moves_today(one, now, zone) + 1
        beyond = shrinks and (number > options.moves_per_job or spent + len(moves) >= options.moves_per_day)
        moves.append(TideMove(one, kind, one.replicas, after[j], now, tightest, free, number, beyond))
    return moves, lacking


def _taken_whole(mine: Sequence[Training], running: Sequence[int], soon: Stretches, gpus: Floats) -> list[int]:
    """Positions of those that have to stop, since even the minimum of all is too much."""
    least = np.array(running) * gpus
    taken: list[int] = []
    order = sorted(
        (j for j, n in enumerate(running) if n),
        key=lambda j: (not mine[j].elastic, mine[j].priority, -mine[j].created, mine[j].key),
    )
    for j in order:
        if soon.lacking(least, least) <= 1e-6:
            break
        least[j] = 0.0
        taken.append(j)
    # The last ones may have been more than enough: who came before them in the order may stay.
    for j in taken[:-1]:
        least[j] = running[j] * gpus[j]
        if soon.lacking(least, least) > 1e-6:
            least[j] = 0.0
    return [j for j in taken if not least[j]]


def _grown(
    mine: Sequence[Training],
    now_have: Sequence[int],
    gpus: Floats,
    leads: Floats,
    room: Room,
    now: float,
    options: TideOptions,
    zone: tzinfo,
    spent: int,
) -> list[int]:
    """Replicas after those that may have grown."""
    lasting = Stretches(leads + options.dwell, room, draining=sum(one.draining for one in mine))
    may = [_may_grow(one, now, options, zone) and spent + 2 <= options.moves_per_day for one in mine]
    floors, leasts = list(now_have), [min(one.least, n) for one, n in zip(mine, now_have, strict=True)]
    # Those that were stopped come first, the most important and the oldest of them before others.
    for j in sorted(range(len(mine)), key=lambda j: (-mine[j].priority, mine[j].created, mine[j].key)):
        one = mine[j]
        if not (may[j] and one.taken and not floors[j] and one.least):
            continue
        tried_floors, tried_leasts = list(floors), list(leasts)
        tried_floors[j] = tried_leasts[j] = one.least
        if lasting.lacking(np.array(tried_floors) * gpus, np.array(tried_leasts) * gpus) <= 1e-6:
            floors, leasts = tried_floors, tried_leasts
    ceilings = [
        one.most if may[j] and (floors[j] or (one.taken and not one.least)) else floors[j] for j, one in enumerate(mine)
    ]
    grown = filled(floors, ceilings, leasts, gpus, lasting)
    budget = options.moves_per_day - spent - 1
    after = list(now_have)
    for j, one in enumerate(mine):
        more = grown[j] - now_have[j]
        is_worth_it = more * one.gpus >= options.dead_band or grown[j] == one.most or one.taken
        if more > 0 and is_worth_it and budget > 0:
            after[j], budget = grown[j], budget - 1
    return after


def _may_grow(one: Training, now: float, options: TideOptions, zone: tzinfo) -> bool:
    if one.waiting or 0 <= now - one.moved < options.dwell:
        return False
    return moves_today(one, now, zone) + 2 <= options.moves_per_job


def _lasts(one: Training, now: float, options: TideOptions, zone: tzinfo) -> float:
    """Return the seconds for which its size is to last: the usual time if it has moves left, else the day."""
    if moves_today(one, now, zone) + 2 <= options.moves_per_job:
        return options.dwell
    local = datetime.fromtimestamp(now, zone)
    return max(options.dwell, 86_400.0 - (local.hour * 3600 + local.minute * 60 + local.second))


def moves_today(one: Training, now: float, zone: tzinfo) -> int:
    """That the tide made of it on this local day."""
    if not math.isfinite(one.moved):
        return 0
    return one.moves if _day(one.moved, zone) == _day(now, zone) else 0


def _day(moment: float, zone: tzinfo) -> int:
    return datetime.fromtimestamp(moment, zone).toordinal()


def _room_of(demand: TideDemand, pool: int, now: float) -> Room:
    free = demand.room[pool]

    def room(begin: float, end: float) -> float:
        return float(free[demand.slots(now + begin, now + end)].min())

    return room


def _tightest(demand: TideDemand, pool: int, now: float, seconds: float) -> tuple[int, float]:
    """The half hour in the time ahead that leaves the least, and what it leaves."""
    slots = np.flatnonzero(demand.slots(now, now + seconds))
    free = demand.room[pool][slots]
    at = int(free.argmin())
    return int(slots[at]), float(free[at])


def _carry_out(by_key: dict[str, Training], moves: Sequence[TideMove]) -> None:
    for move in moves:
        by_key[move.training.key] = after_move(move)
