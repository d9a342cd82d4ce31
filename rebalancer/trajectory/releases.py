"""Which services are released on which day, in addition to what was recorded. The same for every rule of a seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from base.arrays import Ints
from scorer.replay.recording import Recording


def daily_releases(recording: Recording, n_days: int, share: float, seed: int) -> Mapping[int, Ints]:
    """Services that are released on each day of the trajectory.

    share : of the services that run on at the start, Jobs left out. Each is released once before any is again. Shares
            of a service add up: 1 % of 48 services are three or four in a week
    """
    there = np.flatnonzero((recording.replicas_at_start() > 0) & ~recording.ending)
    rng = np.random.default_rng((seed, 2))
    order, start = rng.permutation(there), rng.random()
    ends = np.floor(start + share * len(there) * np.arange(n_days + 1)).astype(np.int64)
    return {day: order[np.arange(ends[day], ends[day + 1]) % max(len(there), 1)] for day in range(n_days)}
