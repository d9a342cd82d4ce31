"""A day of CronJobs, drawn: frequent small ones, bursts at full hours, evening batches, and nightly reports that may
wait or have to be ready in the morning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

GIB = 2.0**30
SIZE = 0.6
"""Of the pods: then what they request fits beside the sample's services even in the evening, and there is a choice. At
1.0 nodes are full by requests from 18:00 to 22:00, and jobs wait for room whoever places them."""

FIRST_HOUR = 6
"""The day begins at six in the morning, so that a night is not cut."""


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """One run of a CronJob: so many like pods. Times are in seconds from the beginning of the day.

    cores, memory    : what a pod really uses while it runs
    request_cores    : what it asks for, which is another matter
    declared_run     : what its owner says; nothing runs longer
    runs             : (n_pods,) how long they really run
    latest_start     : after its creation; None = it does not say
    deadline         : on the day's clock; None = it does not say
    """

    cron_job: str
    number: int
    created: float
    cores: float
    memory: float
    request_cores: float
    declared_run: float
    runs: tuple[float, ...]
    latest_start: float | None = None
    deadline: float | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it may wait."""
        return self.latest_start is not None or self.deadline is not None


def drawn_day(seed: int, size: float = SIZE) -> list[DrawnRun]:
    """60 CronJobs by creation. size: of the pods."""
    rng = np.random.default_rng((seed, 8))
    runs: list[DrawnRun] = []
    for n in range(16):
        runs += _cron_job(rng, f"hourly-{n}", _hours(range(24)), (4, 16), (0.25, 1.0), (5, 25), size)
    for n in range(8):
        every = [60.0 * minute for minute in range(0, 1440, 15)]
        runs += _cron_job(rng, f"quarterly-{n}", every, (1, 4), (0.25, 0.5), (3, 8), size)
    for n in range(6):
        full_hours = rng.choice(np.arange(2, 15), size=3, replace=False)
        runs += _cron_job(rng, f"burst-{n}", _hours(full_hours.tolist()), (20, 60), (0.2, 0.5), (3, 10), size)
    for n in range(12):
        at = _hours([int(rng.integers(18, 22)) - FIRST_HOUR])
        patience = float(rng.uniform(3, 8)) * 3600 if n % 2 else None
        runs += _cron_job(rng, f"evening-{n}", at, (10, 40), (0.5, 1.0), (20, 60), size, latest_start=patience)
    for n in range(18):
        at = _hours([int(rng.integers(17, 23)) - FIRST_HOUR])
        ready = None if n % 3 == 0 else 3600.0 * (29.0 - FIRST_HOUR)  # five in the morning
        patience = 6 * 3600.0 if ready is None else None
        runs += _cron_job(
            rng, f"nightly-{n}", at, (10, 40), (0.5, 1.5), (20, 90), size, latest_start=patience, deadline=ready
        )
    return sorted(runs, key=lambda run: (run.created, run.cron_job))


def _hours(hours: Iterable[int]) -> list[float]:
    return [3600.0 * float(hour) for hour in hours]


def _cron_job(
    rng: np.random.Generator,
    name: str,
    times: list[float],
    pods: tuple[int, int],
    cores: tuple[float, float],
    minutes: tuple[float, float],
    size: float,
    *,
    latest_start: float | None = None,
    deadline: float | None = None,
) -> Iterator[DrawnRun]:
    """All runs of one: its size is drawn once, how long its pods run each time."""
    n_pods, uses = int(rng.integers(pods[0], pods[1] + 1)), size * float(rng.uniform(*cores))
    declared = 60.0 * float(rng.uniform(*minutes))
    # As services do (data/README.md): the error of a request is log-normal.
    asks = uses * float(np.exp(rng.normal(0.3, 0.4)))
    for number, created in enumerate(times):
        runs = declared * rng.uniform(0.7, 1.0, n_pods)
        yield DrawnRun(
            cron_job=name,
            number=number,
            created=created,
            cores=uses,
            memory=uses * GIB,
            request_cores=round(asks, 3),
            declared_run=declared,
            runs=tuple(runs.tolist()),
            latest_start=latest_start,
            deadline=deadline,
        )
