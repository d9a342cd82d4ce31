"""What one pod of each service is expected to use over a week, and what it requests today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Calendar, DayType
from forecast.hidden_demand import HiddenDemand
from forecast.resources import MEMORY
from forecast.service_key import ServiceKey
from scorer.replay.curves import CurveForecast
from scorer.replay.window import ReplayWindow


@dataclass(frozen=True, slots=True)
class PodUseOfService:
    """All values are of one pod, in base units; half hours are those of the week.

    mean, std   : (n_services, n_resources, n_slots) expected usage and the error of it
    highest_memory : (n_services,) bytes, highest half hour that was seen or is expected
    replicas    : (n_services, n_slots) expected pods
    requests    : (n_services, 2) today's, cores and bytes; 0 = none
    measured    : (n_services, 2) whether CPU and memory of its pods were measured
    ending      : (n_services,) whether its pods run to completion
    hidden      : demand that limits hide
    is_workday  : (n_slots,) neither weekend nor holiday
    hour        : (n_slots,) local hour of the day
    capacity    : (n_resources,) of all nodes together; NaN = not a limit
    allocatable : (2,) of all nodes together; infinite = not known
    n_nodes     : how many nodes these are
    """

    services: tuple[ServiceKey, ...]
    mean: Floats
    std: Floats
    highest_memory: Floats
    replicas: Floats
    requests: Floats
    measured: Bools
    ending: Bools
    hidden: HiddenDemand
    is_workday: Bools
    hour: Ints
    capacity: Floats
    allocatable: Floats
    n_nodes: int


def use_of(
    forecast: CurveForecast,
    window: ReplayWindow,
    calendar: Calendar,
    services: Sequence[ServiceKey],
    *,
    requests: Floats,
    seen_memory: Floats,
    measured: Bools,
    hidden: HiddenDemand,
    capacity: Floats,
    allocatable: Floats,
) -> PodUseOfService:
    """Read it from a forecast.

    seen_memory : (n_services,) highest memory of a pod that was measured; NaN = none was
    capacity    : (n_nodes, n_resources); NaN = not a limit
    allocatable : (n_nodes, 2)
    """
    std = np.zeros_like(forecast.mean)
    if forecast.bound is not None:
        std = np.sqrt(forecast.bound.own_variance + forecast.bound.shared_variance)
    days = [window.days[(window.first_slot + slot) // SLOTS_PER_DAY] for slot in range(window.n_slots)]
    expected = np.maximum(forecast.mean[:, MEMORY].max(axis=1), forecast.curves[:, MEMORY].max(axis=(1, 2)))
    return PodUseOfService(
        services=tuple(services),
        mean=forecast.mean,
        std=std,
        highest_memory=np.fmax(expected, seen_memory),
        replicas=forecast.replicas,
        requests=np.nan_to_num(requests),
        measured=measured,
        ending=np.array([service.runs_to_completion for service in services], dtype=np.bool_),
        hidden=hidden,
        is_workday=_workdays(calendar, days),
        hour=np.asarray((window.first_slot + np.arange(window.n_slots)) % SLOTS_PER_DAY * 24 // SLOTS_PER_DAY),
        capacity=_sum(capacity),
        allocatable=allocatable.sum(axis=0),
        n_nodes=len(allocatable),
    )


def _workdays(calendar: Calendar, days: Sequence[date]) -> Bools:
    types = calendar.describe(tuple(days)).day_type
    return np.asarray(types == DayType.WORKDAY, dtype=np.bool_)


def _sum(capacity: Floats) -> Floats:
    """Of nodes that have a limit; NaN where none has: (n_resources,)."""
    known = np.isfinite(capacity)
    return np.where(known.any(axis=0), np.where(known, capacity, 0.0).sum(axis=0), np.nan)
