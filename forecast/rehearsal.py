"""Past weeks forecast from before they began: what the errors of services and nodes are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from base.progress import Progress
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.fit_inputs import Series
from forecast.history import History
from forecast.holiday_effect import as_ordinary
from forecast.replica_forecast import ReplicaForecast, share_of_reference
from forecast.resources import MEMORY
from forecast.scenarios import knows_levels
from forecast.selection import Selection
from forecast.spread import Spread, spread_of


@dataclass(frozen=True, slots=True)
class PastForecast:
    """What was forecast at midnight of day `first_day` for the days that follow.

    usage : (n_services, n_resources, n_days, 48) of one pod, at the replica counts those days really had
    """

    first_day: int
    usage: Floats

    @property
    def end_day(self) -> int:
        return self.first_day + int(self.usage.shape[2])

    def days(self, history: History) -> tuple[date, ...]:
        """The local days that were forecast."""
        return history.days[self.first_day : self.end_day]

    def with_effect(self, factor: Floats) -> PastForecast:
        """The same with what is known of single days, (n_services, n_resources, n_days, 48), multiplied in."""
        return replace(self, usage=self.usage * factor)


def rehearse(
    history: History,
    replicas: ReplicaForecast,
    series: Series,
    usage: AnyFloats,
    days: Days,
    selection: Selection,
    weeks: int,
    progress: Progress,
) -> list[PastForecast]:
    """Forecast past weeks from before they began, the newest first; under two weeks of history, its second half.

    The curves know nothing of the days they forecast. The blend's weights do: they were chosen on the last week among
    others, so that week's errors come out a little small. So do those of resources no pod is measured for: their
    history was completed with weights of the whole window (forecast.peak_weights).

    usage : (n_series, n_days, 48) history at today's replica counts, NaN = not measured
    days  : its calendar, holidays included
    weeks : how many at most
    """
    past = []
    share = share_of_reference(replicas)
    ordinary = as_ordinary(days)
    for week in range(1, weeks + 1):
        first = history.n_days - 7 * week
        length = 7
        if first < 7:
            if week > 1 or history.n_days < 2:
                break
            first = history.n_days - history.n_days // 2
            length = history.n_days - first
        span = slice(first, first + length)
        curves = selection.predict(
            usage[:, :first], ordinary.take(slice(first)), ordinary.take(span), progress=progress
        )
        table = series.unflatten(curves)
        of_reference = np.where(share[:, span] > 0, share[:, span], 1.0)[:, :, None]
        for resource in range(table.shape[1]):
            if resource != MEMORY:
                table[:, resource] /= of_reference
        past.append(PastForecast(first, table))
    return past


def levels_known(history: History, past: list[PastForecast]) -> Bools:
    """`scenarios.knows_levels` over the rehearsed weeks that a whole week came before: (n_services, n_resources)."""
    weeks = [p for p in past if p.first_day >= 7]
    if not weeks:
        return np.zeros(history.usage_per_pod.shape[:2], dtype=np.bool_)

    def level(usage: AnyFloats) -> Floats:
        measured = np.isfinite(usage)
        total: Floats = np.where(measured, usage, 0.0).sum(axis=(2, 3), dtype=np.float64)
        return np.asarray(total / np.maximum(measured.sum(axis=(2, 3)), 1))

    usage = history.usage_per_pod
    return knows_levels(
        np.stack([level(p.usage) for p in weeks], axis=-1),
        np.stack([level(usage[:, :, p.first_day : p.first_day + p.usage.shape[2]]) for p in weeks], axis=-1),
        np.stack([level(usage[:, :, p.first_day - 7 : p.first_day]) for p in weeks], axis=-1),
    )


def spread_of_past(history: History, past: Sequence[PastForecast], leave_out: tuple[int, int] = (0, 0)) -> Spread:
    """Errors in parts over the rehearsed days; with none, only the scatter between pods is known.

    leave_out : days first..end (end exclusive) that do not count
    """
    days = [np.arange(p.first_day, p.first_day + p.usage.shape[2]) for p in past]
    index = np.concatenate(days) if days else np.empty(0, dtype=np.int64)
    counts = (index < leave_out[0]) | (index >= leave_out[1])
    index = index[counts]
    if not len(index):
        nothing = np.zeros((*history.usage_per_pod.shape[:2], 0, SLOTS_PER_DAY))
        return spread_of(nothing, nothing, np.zeros((len(history.services), 0, SLOTS_PER_DAY)), history.pod_variance)
    replicas, parts = history.replicas[:, index], []
    for resource in range(history.usage_per_pod.shape[1]):  # one at a time: all of them took more memory than the rest
        one = slice(resource, resource + 1)
        forecast = np.concatenate([p.usage[:, one] for p in past], axis=2)[:, :, counts]
        actual, variance = history.usage_per_pod[:, one, index], history.pod_variance[:, one, index]
        parts.append(spread_of(actual - forecast, forecast, replicas, variance))
    return Spread(
        np.concatenate([part.own_std for part in parts], axis=1),
        np.concatenate([part.shared_std for part in parts], axis=1),
        np.concatenate([part.cluster_std for part in parts]),
    )
