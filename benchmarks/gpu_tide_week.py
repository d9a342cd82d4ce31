"""Inference demand of a week in GPUs, from the curves of the bundled sample, and what was forecast of it each night.

Every service of the sample is taken to serve a model on GPUs: its replicas follow its CPU load from half hour to half
hour, as a horizontal autoscaler would have it. A model is fitted on the history up to the
midnight before each day that is played, and read as the tide reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from base.arrays import Floats
from cluster.predicted.horizon import HORIZON_DAYS
from cluster.predicted.pod_profiles import Profiles
from forecast.calendar import SLOTS_PER_DAY
from forecast.fit import fit
from forecast.history import History
from forecast.resources import CPU

DAYS: Final = 7
_REPLICAS: Final = 24.0
"""At the highest half hour of the history that the first model knows, of the largest service."""


@dataclass(frozen=True, slots=True)
class TideWeek:
    """
    services : names
    starts   : (DAYS * 48 + 1,) unix seconds
    replicas : (n_services, DAYS * 48) what came: whole replicas
    before   : (n_services, n_slots) the same of the two weeks before
    forecast : (n_services, DAYS, 7 * 48) replicas as expected at the midnight before each day, for the week from then
    """

    services: tuple[str, ...]
    starts: Floats
    replicas: Floats
    before: Floats
    forecast: Floats


def tide_week(directory: Path = Path("data/sample")) -> TideWeek:
    """Takes a minute: seven fits."""
    from trainer.history.files import read_history

    history = _autoscaled(read_history(directory))
    first = history.n_days - DAYS
    begins = history.calendar.midnight(history.days[first]).timestamp()
    forecasts = []
    for day in range(first, history.n_days):
        profiles = Profiles(fit(history.before(day)))
        days = history.calendar.horizon(history.days[day], HORIZON_DAYS)
        forecasts.append(profiles.expected_replicas(history.services, days))
    return TideWeek(
        services=tuple(map(str, history.services)),
        starts=begins + 1800.0 * np.arange(DAYS * SLOTS_PER_DAY + 1, dtype=np.float64),
        replicas=history.replicas[:, first:].reshape(len(history.services), -1).astype(np.float64),
        before=history.replicas[:, first - 14 : first].reshape(len(history.services), -1).astype(np.float64),
        forecast=np.stack(forecasts, axis=1),
    )


def _autoscaled(history: History) -> History:
    """The same load carried by as many replicas as it needs."""
    load = np.nan_to_num(history.usage_per_pod[:, CPU] * history.replicas)  # (n_services, n_days, 48) cores
    before = load[:, : history.n_days - DAYS].reshape(len(load), -1)
    highest = np.maximum(np.quantile(before, 0.999, axis=1), 1e-6)  # (n_services,)
    size = np.clip(np.ceil(_REPLICAS * np.sqrt(highest / highest.max())), 2.0, None)
    of_one = highest / size  # cores that a replica is to run at
    replicas = np.maximum(1.0, np.ceil(load / of_one[:, None, None] - 1e-9)).astype(np.float32)
    ratio = np.where(replicas > 0, np.nan_to_num(history.replicas) / replicas, 1.0).astype(np.float32)
    return replace(
        history, replicas=replicas, usage_per_pod=(history.usage_per_pod * ratio[:, None]).astype(np.float32)
    )
