"""How many replicas each training of a pool may have, given the room ahead and how long each takes to give its up.

A training that drains in L seconds holds until now + L what it has now; what comes later it can still react to. With
the trainings' leads L_1 < L_2 < ... the room of the stretches (0, L_1], (L_1, L_2], ... bounds those that cannot be
gone by then:

    for every k:   sum of GPUs of all j with L_j >= L_k  +  sum of least GPUs of the others   <=   room in stretch k

Within that, the one with the fewest GPUs above its minimum gets the next replica (max-min fairness). What a training
that takes long to drain gives up now does not help in time for what comes sooner: that is for the quicker ones to give
(`drained_in_time`), and for the others only where these have no more.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from base.arrays import Floats, Ints

Room = Callable[[float, float], float]
"""GPUs that training may have at least between two times, in seconds ahead."""

_SMALL = 1e-6
_HALVINGS = 60
_JUMPS = 3
_MANY = 32
"""Replicas to give from which on jumping is quicker than one by one."""


class Stretches:
    """room: (n_stretches,) of each; first: (n,) trainings count in full in stretches up to and including this one."""

    def __init__(self, leads: Floats, room: Room, *, draining: float = 0.0) -> None:
        """leads: (n,) seconds until each is drained; draining: GPUs that are in use throughout."""
        ends = np.unique(leads)
        self.last: Ints = np.searchsorted(ends, leads)
        begins = [0.0, *ends.tolist()][: len(ends)]
        self._in_full = (np.arange(len(ends))[:, None] <= self.last[None, :]).astype(np.float64)  # (n_stretches, n)
        rooms = [room(begin, end) for begin, end in zip(begins, ends.tolist(), strict=True)]
        self.room = np.array(rooms) - draining

    def used(self, full: Floats, least: Floats) -> Floats:
        """(n_stretches,) GPUs. full, least: (n,) of each training until it is drained, and after."""
        return np.asarray(self._in_full @ (full - least) + least.sum())

    def lacking(self, full: Floats, least: Floats) -> float:
        """GPUs by which the worst stretch is overdrawn; 0 = none is."""
        if not len(self.room):
            return 0.0
        return max(0.0, float((self.used(full, least) - self.room).max()))


def filled(
    floors: Sequence[int], ceilings: Sequence[int], leasts: Sequence[int], gpus: Floats, stretches: Stretches
) -> list[int]:
    """Replicas of each: from its floor up to its ceiling, as far as there is room.

    leasts : what each can be brought down to by the time it is drained; fairness counts from there
    """
    if not len(floors):
        return []
    levels = np.array(floors, dtype=np.int64)
    most, least = np.maximum(np.array(ceilings, dtype=np.int64), levels), np.array(leasts, dtype=np.int64)
    for _ in range(_JUMPS):
        if (most - levels).sum() < _MANY:
            break
        levels = _jumped(levels, most, least, gpus, stretches)
        dropped = _one_by_one(levels, most, least, gpus, stretches, until_dropped=True)
        if dropped is None:
            break
        most[dropped] = levels[dropped]
    _one_by_one(levels, most, least, gpus, stretches, until_dropped=False)
    return [int(level) for level in levels]


def _jumped(levels: Ints, most: Ints, least: Ints, gpus: Floats, stretches: Stretches) -> Ints:
    """(n,) the levels that giving replicas one by one comes through last before one does not fit, or some before it:
    every one has what lies below a common number of GPUs above its minimum. Thousands of replicas in some steps."""

    def at(water: float) -> Ints:
        above = np.ceil(np.minimum(water / gpus - _SMALL, 2**40)).astype(np.int64)
        return np.asarray(np.clip(least + above, levels, most))

    # What is too much already is no reason against those that take nothing there.
    now = stretches.used(levels * gpus, np.minimum(levels, least) * gpus)
    bound = np.maximum(stretches.room, now) + _SMALL

    def fits(some: Ints) -> bool:
        return bool((stretches.used(some * gpus, np.minimum(some, least) * gpus) <= bound).all())

    if fits(most):
        return most.copy()
    low, high = float(((levels - least) * gpus).min()), float(((most - least) * gpus).max())
    if not fits(at(low)):
        return levels
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if high - low < float(gpus.min()) / 2:
            break
        low, high = (middle, high) if fits(at(middle)) else (low, middle)
    return at(low)


def _one_by_one(
    levels: Ints, most: Ints, least: Ints, gpus: Floats, stretches: Stretches, *, until_dropped: bool
) -> int | None:
    """Gives further replicas, in `levels`; the first training that gets no more, None = all were asked."""
    used = stretches.used(levels * gpus, np.minimum(levels, least) * gpus)
    heap = [((levels[j] - least[j]) * gpus[j], j) for j in range(len(levels)) if levels[j] < most[j]]
    heapq.heapify(heap)
    while heap:
        _, j = heapq.heappop(heap)
        # A replica beyond what it can be brought down to counts until it is drained, one below for good.
        end = int(stretches.last[j]) + 1 if levels[j] >= least[j] else len(used)
        if (used[:end] + gpus[j] > stretches.room[:end] + _SMALL).any():
            if until_dropped:
                return int(j)
            continue
        used[:end] += gpus[j]
        levels[j] += 1
        if levels[j] < most[j]:
            heapq.heappush(heap, ((levels[j] - least[j]) * gpus[j], j))
    return None


def drained_in_time(replicas: Sequence[int], floors: Sequence[int], gpus: Floats, stretches: Stretches) -> list[int]:
    """Replicas of each that may stay, as far as giving them up now is in time: in stretch k

        GPUs that slower ones have  +  GPUs of those with L_j = L_k  +  least GPUs of quicker ones   <=   room

    Fair among those that take equally long.
    """
    have, least = np.array(replicas, dtype=np.float64) * gpus, np.array(floors, dtype=np.float64) * gpus
    levels = [int(n) for n in replicas]
    for k, room in enumerate(stretches.room.tolist()):
        mine: list[int] = np.flatnonzero(stretches.last == k).tolist()
        left = room - float(have[stretches.last > k].sum() + least[stretches.last < k].sum())
        if have[mine].sum() <= left + _SMALL:
            continue
        own = Stretches(np.zeros(len(mine)), lambda begin, end, left=left: left)  # type: ignore[misc]
        some = [floors[j] for j in mine]
        for j, level in zip(mine, filled(some, [replicas[j] for j in mine], some, gpus[mine], own), strict=True):
            levels[j] = level
    return levels
