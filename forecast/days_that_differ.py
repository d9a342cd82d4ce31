"""Days that differ, taken out of the past and put into the days to come: holidays, events, month ends, releases.

What predictors learn from are ordinary days at today's level. What a day that differs makes of an ordinary one is
learned from the days that were taken out (`holiday_effect`, `event_effect`, `month_ends`, `change_points`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.calendar import Days, DayType
from forecast.change_points import LevelChanges
from forecast.event_effect import EventDays, EventEffect, expected_curves, expected_then
from forecast.fit_inputs import Series
from forecast.history import History
from forecast.holiday_effect import as_ordinary, without_holidays
from forecast.model import DATED_DAYS
from forecast.month_ends import are_learnable, daily_means, month_end_days
from forecast.month_ends import takes_part as month_ends_of
from forecast.replica_forecast import ReplicaForecast
from forecast.resources import MEMORY


@dataclass(frozen=True, slots=True)
class PastUsage:
    """The history of all series with and without the days that differ, (n_series, n_days, 48) each, NaN = not there.

    events        : those of the user, and the month ends of services that show them
    with_events   : every day
    with_holidays : without events; the same table as `with_events` where there are none
    ordinary      : without events and holidays
    """

    events: EventDays
    with_events: AnyFloats
    with_holidays: AnyFloats
    ordinary: AnyFloats

    def bring_to_today(self, changes: LevelChanges) -> None:
        """Multiply what lies before a release, in place."""
        changes.bring_to_today(self.ordinary)
        changes.bring_to_today(self.with_events)
        if self.with_holidays is not self.with_events:
            changes.bring_to_today(self.with_holidays)

    def event_effects(
        self,
        history: History,
        series: Series,
        replicas: ReplicaForecast,
        expected: Floats,
        day_types: Floats,
        horizon: Days,
    ) -> tuple[EventEffect, EventEffect]:
        """What events make of the usage of one pod, by series, and of the number of pods, by service.

        expected  : (n_series, 14, 48) what is expected without them
        day_types : (n_series, 4, 48) the same for every day of a type
        """
        days, events = history.describe_days(), self.events
        services = np.arange(len(history.services))
        pods_follow = replicas.autoscaled
        rows = np.flatnonzero(np.any(events.takes_part, axis=0)[series.service])
        service, resource = series.service[rows], series.resource[rows]
        of_usage = events.effect(
            past=history.days,
            service=service,
            follows_factor=~(pods_follow | replicas.by_clock)[service] & (resource != MEMORY),
            group=resource,
            usage=self.with_events[rows],
            expected=expected_then(
                self.ordinary[rows], expected_curves(expected[rows], horizon, day_types[rows, DayType.HOLIDAY]), days
            ),
        ).among(rows, len(series.service))
        pods = np.where(pods_follow[:, None, None], history.replicas, np.nan)
        of_pods = events.effect(
            past=history.days,
            service=services,
            follows_factor=pods_follow,
            group=services,
            usage=pods,
            expected=expected_then(
                without_holidays(events.without(pods, services), days),
                expected_curves(
                    replicas.day_type[:, as_ordinary(horizon).day_type], horizon, replicas.day_type[:, DayType.HOLIDAY]
                ),
                days,
            ),
        )
        return of_usage, of_pods


def separate_days(
    history: History,
    events: EventDays,
    series: Series,
    replicas: ReplicaForecast,
    usage: AnyFloats,
    measured: Bools,
) -> PastUsage:
    """Take the days that differ out of a history.

    usage    : (n_series, n_days, 48) every day, at today's replica count
    measured : (n_services, n_days) days with any usage; others may hold what was borrowed
    """
    days = history.describe_days()
    with_holidays = events.without(usage, series.service) if events.events else usage
    ordinary = without_holidays(with_holidays, days).astype(np.float32)
    and_month_ends = _month_ends(history, events, series, replicas, ordinary, measured)
    if len(and_month_ends.events) > len(events.events):
        with_holidays = and_month_ends.without(usage, series.service)
        ordinary = without_holidays(with_holidays, days).astype(np.float32)
    return PastUsage(and_month_ends, usage, with_holidays, ordinary)


def _month_ends(
    history: History, events: EventDays, series: Series, replicas: ReplicaForecast, usage: AnyFloats, measured: Bools
) -> EventDays:
    """The events and, of services that show them, the month ends.

    usage    : (n_series, n_days, 48) without holidays and events
    measured : (n_services, n_days)
    """
    until = history.days[-1] + timedelta(days=DATED_DAYS)
    ends = month_end_days(history.calendar, (*history.days, until))
    if not are_learnable(ends, history.days):
        return events
    rows = np.flatnonzero((series.resource != MEMORY) & ~replicas.by_clock[series.service])
    service = series.service[rows]
    load = np.where(measured[service], daily_means(usage, rows), np.nan)  # (n_rows, n_days)
    pods = daily_means(history.replicas, service)
    load = np.where(replicas.autoscaled[service, None], load * pods, load)
    part = month_ends_of(ends, history.days, history.describe_days(), load, service, len(history.services))
    return events.and_also(ends, part, history.days)
