"""How many pods a service will have, whether that number follows its load, and what one pod would have used at that
number.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from forecast.calendar import Days, DayType
from forecast.history import History
from forecast.quantiles import nan_quantile
from forecast.resources import MEMORY, RESOURCES
from forecast.run_forecast import RunForecast, mean_by_day_type

_RECENT_DAYS = 14

_SWING = 0.2
"""An autoscaled service loses at least this share of its evening pods, and two of them, on most days."""


@dataclass(frozen=True, slots=True)
class ReplicaForecast:
    """Expected replica counts.

    autoscaled : (n_services,) the count follows the load
    by_clock   : (n_services,) the count follows the clock: Job owners
    reference  : (n_services,) pods serving when last seen (autoscaled: the recent mean; Job owners of which more is
                 expected: the most that are usual in any half hour); 0 = never seen
    daily      : (n_services, n_days) typical count of each past day while it had pods, NaN without any
    dated      : (n_services, n_horizon_days, 48)
    day_type   : (n_services, 4, 48)
    """

    autoscaled: Bools
    by_clock: Bools
    reference: Floats
    daily: Floats
    dated: Floats
    day_type: Floats


def forecast_replicas(
    replicas: AnyFloats, days: Days, horizon: Days, runs: RunForecast, special: Bools | None = None
) -> ReplicaForecast:
    """Expected pods per slot: the recent pattern where the count follows load or clock, the last count elsewhere.

    replicas : (n_services, n_days, 48) pods present; NaN = no data in the slot
    runs     : which services are Job owners, since when, and which of them are gone
    special  : (n_services, n_days) days of events, whose counts are not usual ones; None = there are none
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # services without data in a day
        seen = np.where(replicas > 0, replicas, np.nan).astype(np.float64)
        daily = nan_quantile(seen, 0.5)  # (n_services, n_days)
        # Of a day the 5th and 95th percentile: a pod replaced by a rollout must not look like scaling.
        low, high = (nan_quantile(seen[:, -_RECENT_DAYS:], q) for q in (0.05, 0.95))  # (n_services, recent)
        swings = ((high - low) >= np.maximum(2.0, _SWING * high)) & np.isfinite(high)
        measured_days = np.isfinite(high).sum(axis=1)
        autoscaled = (swings.sum(axis=1) * 2 > measured_days) & (measured_days > 0) & ~runs.is_owner

        last_slots = seen[:, -7:].reshape(len(seen), -1)
        reference = np.where(autoscaled, np.nanmean(last_slots, axis=1), _last_count(seen))
        reference = np.nan_to_num(reference)

        recent = replicas[:, -4 * 7 :].astype(np.float64)
        if special is not None:
            recent[special[:, -4 * 7 :]] = np.nan
        recent_types = days.day_type[-4 * 7 :]
        overall = np.nanmean(recent, axis=1)  # (n_services, 48)
        day_type = np.stack(
            [
                _first_finite(
                    *(
                        np.nanmean(recent[:, recent_types == t], axis=1)
                        for t in _substitutes(kind)
                        if (recent_types == t).any()
                    ),
                    overall,
                )
                for kind in DayType
            ],
            axis=1,
        )  # (n_services, 4, 48)
        gone = ~(np.nan_to_num(replicas[:, -1]) > 0).any(axis=1) & np.isfinite(replicas[:, -1]).any(axis=1)
    expected = np.where(gone, 0.0, reference)
    day_type = np.where(autoscaled[:, None, None], np.nan_to_num(day_type), expected[:, None, None])
    owners = np.flatnonzero(runs.is_owner)
    if len(owners):
        usual = mean_by_day_type(replicas[owners], runs.since[owners], days)
        most = usual.max(axis=(1, 2))
        reference[owners] = np.where((most > 0) & ~runs.ended[owners], most, reference[owners])
        day_type[owners] = np.where(runs.ended[owners, None, None], 0.0, usual)
    return ReplicaForecast(autoscaled, runs.is_owner, reference, daily, day_type[:, horizon.day_type], day_type)


def _last_count(seen: Floats) -> Floats:
    """Median of the last six slots in which the service had pods: (n_services,)."""
    flat = seen.reshape(len(seen), -1)
    known = np.isfinite(flat)
    rank = known[:, ::-1].cumsum(axis=1)[:, ::-1]  # 1 for the last known slot, 2 for the one before
    masked: Floats = np.where(known & (rank <= 6), flat, np.nan)
    return np.asarray(np.nanmedian(masked, axis=1))


def _substitutes(kind: DayType) -> tuple[DayType, ...]:
    """Day types to read when one has not been seen yet: a holiday is taken for a Sunday, a Sunday for a Saturday."""
    if kind is DayType.WORKDAY:
        return (kind,)
    weekend = (DayType.SUNDAY, DayType.SATURDAY) if kind is not DayType.SATURDAY else (DayType.SATURDAY, DayType.SUNDAY)
    return (kind, *weekend) if kind is DayType.HOLIDAY else weekend


def _first_finite(*tables: Floats) -> Floats:
    """Elementwise the first finite value, NaN where none is."""
    out = tables[0]
    for table in tables[1:]:
        out = np.where(np.isfinite(out), out, table)
    return out


def usage_at_reference(history: History, replicas: ReplicaForecast) -> Floats32:
    """History as it would have been with today's replica count: (n_services, n_resources, n_days, 48).

    Work is shared: what six pods did is what twelve do with half the load each. Autoscaled services change their count
    because of their load, so theirs per pod stays. So does that of Job owners, each of whose pods has work of its own,
    and memory, which every process needs for itself.
    """
    usage = history.usage_per_pod.copy()
    share = share_of_reference(replicas)
    for resource in range(len(RESOURCES)):
        if resource != MEMORY:
            usage[:, resource] *= share[:, :, None]
    return usage


def share_of_reference(replicas: ReplicaForecast) -> Floats:
    """replicas then / replicas now per day, 1 where unknown, autoscaled or a Job owner: (n_services, n_days)."""
    reference = replicas.reference[:, None]
    load_stays = replicas.autoscaled | replicas.by_clock
    known = np.isfinite(replicas.daily) & (reference > 0) & ~load_stays[:, None]
    return np.where(known, replicas.daily / np.where(reference > 0, reference, 1.0), 1.0)
