"""Sharing out: thousands at once is the same as one by one, and what is in time is asked of who can be in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from profiles.gpu.tide.replica_levels import Stretches, filled


def stretches(leads: Sequence[float], rooms: Sequence[float]) -> Stretches:
    """rooms: of the stretches in order."""
    at = iter(rooms)
    return Stretches(np.array(leads), lambda begin, end: next(at))


def one_by_one(floors: list[int], ceilings: list[int], leasts: list[int], gpus: Floats, within: Stretches) -> list[int]:
    """The plain way: whoever has least above its minimum gets one more, if it fits."""
    levels, active = list(floors), [j for j in range(len(floors)) if floors[j] < ceilings[j]]

    def used() -> Floats:
        now = np.array(levels)
        return within.used(now * gpus, np.minimum(now, leasts) * gpus)

    while active:
        j = min(active, key=lambda j: ((levels[j] - leasts[j]) * gpus[j], j))
        before = used()
        levels[j] += 1
        after = used()
        grows = after > before
        if (after[grows] > within.room[grows] + 1e-6).any():
            levels[j] -= 1
            active.remove(j)
        elif levels[j] == ceilings[j]:
            active.remove(j)
    return levels


some = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 30), st.sampled_from([1, 2, 8]), st.integers(0, 2)),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=100)
@given(some, st.lists(st.integers(0, 200), min_size=3, max_size=3))
def test_many_at_once_are_the_same_as_one_by_one(trainings: list[tuple[int, ...]], rooms: list[int]) -> None:
    least = [one[0] for one in trainings]
    floors = [min(one[0], one[1]) for one in trainings]
    ceilings = [floor + one[2] for floor, one in zip(floors, trainings, strict=True)]
    gpus = np.array([one[3] for one in trainings], dtype=np.float64)
    leads = np.array([float(one[4]) for one in trainings])
    within = stretches(leads.tolist(), rooms)
    assert filled(floors, ceilings, least, gpus, within) == one_by_one(floors, ceilings, least, gpus, within)
