"""A pod that runs for a while only: when it is expected to run, and what it is expected to use meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import Floats
from cluster.predicted.horizon import Horizon
from forecast.calendar import SLOTS_PER_DAY
from forecast.model import PeakModel
from forecast.resources import MEMORY, RESOURCES

_LONGEST = 10 * 365 * 86_400.0
"""Seconds; beyond that a moment may be outside the calendar, and any client may write one."""

_WEEK = 7


@dataclass(frozen=True, slots=True)
class Run:
    """When a pod starts and is expected to end, unix seconds."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RunHours:
    """Half hours that a run touches: from `first` to before `end`."""

    first: int
    end: int


def expected_run(started: float | None, seconds: float | None, now: float, known: Run | None) -> Run | None:
    """Return the run of a pod of `seconds` from its start, None if it has no end.

    started : unix seconds; None = not yet: the start that was known of it holds until the run is over, else it is now
    """
    if seconds is None or math.isnan(seconds):
        return None
    if started is None and known is not None:
        run = lasting(known, seconds)
        if run.start <= now < run.end:
            return run
    start = now if started is None else min(max(started, now - _LONGEST), now)
    return lasting(Run(start, start), seconds)


def lasting(run: Run, seconds: float) -> Run:
    """Return the same run with another expected length. seconds: from its start"""
    return Run(run.start, run.start + min(max(seconds, 0.0), _LONGEST))


def half_hours(run: Run, horizon: Horizon) -> RunHours:
    """What a run touches of the half hours of a horizon: the one under way, all until its end, and those of today
    since its start.

    A pod that is asked about has not ended, whatever was expected: its run reaches at least to the end of the half
    hour under way.
    """
    midnight = horizon.today.toordinal() * SLOTS_PER_DAY
    first = min(max(math.floor(horizon.position(run.start)), 0), horizon.slot)
    end = min(max(math.ceil(horizon.position(run.end)), horizon.slot + 1), horizon.n_slots)
    return RunHours(midnight + first, midnight + end)


def under_way(horizon: Horizon) -> int:
    """The half hour that is under way."""
    return horizon.today.toordinal() * SLOTS_PER_DAY + horizon.slot


def slots_of(hours: RunHours, days: Sequence[date]) -> slice:
    """The same as positions among the half hours of consecutive local days: empty if it touches none of them."""
    midnight = days[0].toordinal() * SLOTS_PER_DAY
    n_slots = len(days) * SLOTS_PER_DAY
    return slice(min(max(hours.first - midnight, 0), n_slots), min(max(hours.end - midnight, 0), n_slots))


# What a pod that runs for a while only is expected to use meanwhile, whenever that is: by a model, in one figure each.
#
# The model says what one pod of a Job owner uses while it runs (`run_usage`). Where it does not, the half hours in
# which the service's pods ran say it: a pod that starts at another hour uses as much, so the highest of these holds for
# all.


@dataclass(frozen=True, slots=True)
class RunLevel:
    """(n_resources,) each, base units: what a node feels of one pod (NaN = never measured), and its error (own, and
    what its service's pods share; 0 = not known)."""

    mean: Floats
    own_std: Floats
    shared_std: Floats


class RunLevels:
    """Levels computed when they are first asked for, by any thread: a second thread computes the same again."""

    def __init__(self, model: PeakModel) -> None:
        self._model = model
        self._of: dict[int, RunLevel] = {}  # at most one for each of the model's services
        ratio = model.request_ratio.astype(np.float64).reshape(len(RESOURCES), -1)
        self._ratio = np.nan_to_num(ratio)  # usage per requested unit, day types and half hours in one axis
        self._cost = np.nan_to_num(model.per_pod_cost.astype(np.float64)).reshape(len(RESOURCES), -1)

    def of(self, row: int) -> RunLevel:
        """Of the service in a row of the model: in the half hours of its first week with any pods of it, else in all.

        At the replica count that the model refers to: how much work a run has does not depend on others.
        """
        level = self._of.get(row)
        if level is None:
            level = self._of[row] = self._made(row)
        return level

    def from_requests(self, cpu_cores: float, memory_bytes: float) -> Floats:
        """The highest of the usage that pods with such requests are expected to have: (n_resources,), finite."""
        unit = np.full((len(RESOURCES), 1), cpu_cores)
        unit[MEMORY] = memory_bytes
        return np.asarray((unit * self._ratio + self._cost).max(axis=1))

    def _made(self, row: int) -> RunLevel:
        model = self._model.of_services(np.array([row]))
        days = model.calendar.horizon(model.first_day, _WEEK)
        usage = model.usage_on_node(days)[0].reshape(len(RESOURCES), -1)
        there = np.nan_to_num(model.replicas(days)[0]) > 0  # (n_days, 48)
        if not there.any():
            there[:] = True
        # A resource that was measured only where no pods are expected is not unknown.
        mean = _highest(usage[:, there.ravel()])
        mean = np.where(np.isfinite(mean), mean, _highest(usage))
        correction = np.nan_to_num(model.correction[0].astype(np.float64), nan=1.0)
        known = model.run_usage[0].astype(np.float64) * correction + self._cost.max(axis=1)
        mean = np.where(np.isfinite(known), known, mean)
        hours = there.any(axis=0)
        own, shared = (np.nan_to_num(_highest(std[0][:, hours])) for std in (model.own_std, model.shared_std))
        return RunLevel(mean, own * correction, shared * correction)


def _highest(values: Floats) -> Floats:
    """Along the last axis; NaN = there is none."""
    highest = np.where(np.isfinite(values), values, -np.inf).max(axis=-1).astype(np.float64)
    return np.where(np.isfinite(highest), highest, np.nan)
