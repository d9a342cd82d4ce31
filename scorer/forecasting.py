"""Predicted usage of one node or one service, half hour by half hour, with what was measured so far."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from base.errors import ForecastError
from cluster.degradation import Level
from cluster.live.usage import UsageSource
from cluster.predicted.horizon import start_of_slot
from cluster.predicted.node_curves import node_curves
from cluster.predicted.node_load import LoadInputs
from cluster.predicted.pod_profiles import Profiles
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from scorer.answers import Curve, UsageForecast
from scorer.highest_peak import day_peaks

logger = logging.getLogger(__name__)

DAYS_BACK = 2
_SLOT = timedelta(minutes=SLOT_MINUTES)


def node_usage_forecast(
    names: Sequence[str],
    pods: int,
    capacity: Floats,
    assumed: Bools,
    load: LoadInputs | None,
    now: datetime,
    level: Level,
    version: str | None,
    usage: UsageSource | None,
) -> UsageForecast:
    """A node. names: all that metrics may know it by, its own first; what is past is predicted for today's pods."""
    if load is None:
        return _nothing(names[0], pods, level, "no model has been published")
    horizon = load.horizon
    days = _days(horizon.today, len(horizon.days))
    past = DAYS_BACK * SLOTS_PER_DAY
    fading = np.concatenate([np.zeros(past), horizon.fading()])
    curves = node_curves(load.profiles, load.bases, load.nodes, days, fading=fading, widen=load.widen)
    expected, bound = curves.curve(0)[0], curves.curve(1)[0]
    actual, notes = _measured(
        usage, lambda source, since, until: source.node_history(names, since, until), days, now, horizon.zone
    )
    return UsageForecast(
        name=names[0],
        starts=_starts(days, horizon.zone),
        curves=tuple(
            Curve(
                resource=resource.name,
                unit=resource.unit,
                capacity=float(capacity[r]) if np.isfinite(capacity[r]) else None,
                expected=expected[r],
                bound=bound[r],
                actual=None if actual is None else actual[r],
                days=day_peaks(expected[r], bound[r], days, horizon.zone, past + horizon.slot),
                assumed=bool(assumed[r]),
            )
            for r, resource in enumerate(RESOURCES)
        ),
        level=level,
        model_version=version,
        pods=pods,
        notes=(*notes, "past half hours are predicted for the pods that are there now"),
    )


def service_usage_forecast(
    key: ServiceKey,
    pods: Sequence[str],
    replicas: float,
    requests: tuple[float, float],
    profiles: Profiles | None,
    now: datetime,
    level: Level,
    version: str | None,
    usage: UsageSource | None,
) -> UsageForecast:
    """All pods of a service together. requests: of one pod, for a service that the model does not know."""
    if profiles is None:
        return _nothing(str(key), len(pods), level, "no model has been published")
    calendar = profiles.model.calendar
    today, slot = calendar.day_and_slot(now)
    days = _days(today, 7)
    n_slots = len(days) * SLOTS_PER_DAY
    notes: list[str] = []
    if profiles.knows(key):
        count = np.full(n_slots, replicas)
        if profiles.autoscaled(key) or key.runs_to_completion or profiles.is_expected(key) or not replicas:
            count = profiles.expected_replicas([key], days)[0]
        expected = profiles.usage(key, replicas, days) * count
        factor = np.repeat(
            profiles.peak_factor(key, days), SLOTS_PER_DAY, axis=1
        )  # (n_resources, n_slots, n_quantiles)
    else:
        notes.append("the model does not know this service: predicted from its requests")
        expected = profiles.mean_from_requests(*requests, days).astype(np.float64) * max(len(pods), 1)
        factor = np.tile(np.array([1.0, 2.0]), (len(RESOURCES), n_slots, 1))
    peak, bound = expected * factor[..., 0], expected * factor[..., -1]
    actual, remarks = _measured(
        usage, lambda source, since, until: source.service_history(key, pods, since, until), days, now, calendar.zone
    )
    return UsageForecast(
        name=str(key),
        starts=_starts(days, calendar.zone),
        curves=tuple(
            Curve(
                resource=resource.name,
                unit=resource.unit,
                capacity=None,
                expected=expected[r],
                bound=bound[r],
                actual=None if actual is None else actual[r],
                days=day_peaks(peak[r], bound[r], days, calendar.zone, DAYS_BACK * SLOTS_PER_DAY + slot),
            )
            for r, resource in enumerate(RESOURCES)
        ),
        level=level,
        model_version=version,
        pods=len(pods),
        notes=(*notes, *remarks),
    )


def _nothing(name: str, pods: int, level: Level, note: str) -> UsageForecast:
    return UsageForecast(name, (), (), level, None, pods, (note,))


def _days(today: date, n_days: int) -> tuple[date, ...]:
    """Two days back and `n_days` from today on."""
    return tuple(today + timedelta(days=offset) for offset in range(-DAYS_BACK, n_days))


def _starts(days: Sequence[date], zone: ZoneInfo) -> tuple[datetime, ...]:
    return tuple(start_of_slot(day, slot, zone) for day in days for slot in range(SLOTS_PER_DAY))


def _measured(
    usage: UsageSource | None,
    read: Callable[[UsageSource, datetime, datetime], AnyFloats],
    days: Sequence[date],
    now: datetime,
    zone: ZoneInfo,
) -> tuple[Floats | None, tuple[str, ...]]:
    """What was measured in the half hours of `days` that are over: (n_resources, n_slots), NaN elsewhere.

    Half hours are read in UTC and put where the wall clock shows them, as the model counts them.
    """
    if usage is None:
        return None, ()
    since = start_of_slot(days[0], 0, zone).astimezone(UTC)
    n_past = int((now.astimezone(UTC) - since) / _SLOT)
    if n_past < 1:
        return None, ()
    try:
        measured = read(usage, since, since + n_past * _SLOT)
    except ForecastError as error:
        logger.warning("history of usage cannot be read", extra={"reason": str(error)})
        return None, (f"what was measured cannot be read: {error}",)
    out = np.full((len(RESOURCES), len(days) * SLOTS_PER_DAY), np.nan)
    for i in range(min(n_past, measured.shape[1])):
        local = (since + i * _SLOT).astimezone(zone)
        slot = (local.date() - days[0]).days * SLOTS_PER_DAY + (local.hour * 60 + local.minute) // SLOT_MINUTES
        if 0 <= slot < out.shape[1]:
            out[:, slot] = measured[:, i]
    return out, ()
