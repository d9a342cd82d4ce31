"""The history as a fit looks at it: moved services with the past of their older name, and one row per service and
resource.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.service_key import ServiceKey


def with_earlier_days(history: History) -> History:
    """The same history with the earlier days of moved services filled in."""
    earlier = history.earlier
    if earlier is None:
        return history
    missing = max(0, (history.days[0] - earlier.days[0]).days)
    longer = _days_in_front(history, missing)
    begin = (earlier.days[0] - longer.days[0]).days
    span = slice(begin, begin + len(earlier.days))
    usage, replicas = longer.usage_per_pod.copy(), longer.replicas.copy()
    variance, requests = longer.pod_variance.copy(), longer.daily_requests.copy()
    rows = earlier.service
    usage[rows, :, span] = _filled(usage[rows, :, span], earlier.usage_per_pod)
    variance[rows, :, span] = _filled(variance[rows, :, span], earlier.pod_variance)
    requests[rows, :, span] = _filled(requests[rows, :, span], earlier.daily_requests)
    # Before it came, a service had 0 pods here: what is known of the other place comes first.
    replicas[rows, span] = _filled(earlier.replicas, replicas[rows, span])
    return replace(
        longer, usage_per_pod=usage, replicas=replicas, pod_variance=variance, daily_requests=requests, earlier=None
    )


def _filled(first: AnyFloats, second: AnyFloats) -> AnyFloats:
    return np.where(np.isfinite(first), first, second)


def _days_in_front(history: History, n_days: int) -> History:
    """The history with days before it on which nothing was measured."""
    if n_days == 0:
        return history

    def longer(table: AnyFloats, axis: int) -> AnyFloats:
        shape = list(table.shape)
        shape[axis] = n_days
        return np.concatenate([np.full(shape, np.nan, dtype=table.dtype), table], axis=axis)

    return replace(
        history,
        days=(*(history.days[0] - timedelta(days=n) for n in range(n_days, 0, -1)), *history.days),
        usage_per_pod=longer(history.usage_per_pod, 2),
        replicas=longer(history.replicas, 1),
        pod_variance=longer(history.pod_variance, 2),
        node_usage=longer(history.node_usage, 2),
        node_pod_usage=longer(history.node_pod_usage, 2),
        placements=replace(
            history.placements,
            first=history.placements.first + n_days * SLOTS_PER_DAY,
            end=history.placements.end + n_days * SLOTS_PER_DAY,
        ),
        daily_requests=longer(history.daily_requests, 2).astype(np.float64),
        daily_capacity=None if history.daily_capacity is None else longer(history.daily_capacity, 2).astype(np.float64),
        runs=history.runs.later(n_days),
        one_off_usage=None if history.one_off_usage is None else longer(history.one_off_usage, 2),
        limit_hits=None if history.limit_hits is None else history.limit_hits.later(n_days),
    )


@dataclass(frozen=True, slots=True)
class Series:
    """The (service, resource) pairs that have any data, and the way back to the full tables."""

    service: Ints
    resource: Ints
    shape: tuple[int, int]

    @classmethod
    def of(cls, usage: AnyFloats) -> Series:
        service, resource = np.nonzero(np.isfinite(usage).any(axis=(2, 3)))
        return cls(service, resource, (usage.shape[0], usage.shape[1]))

    def flatten(self, table: AnyFloats) -> Floats32:
        """(n_services, n_resources, ...) -> (n_series, ...)"""
        flat = np.empty((len(self.service), *table.shape[2:]), dtype=np.float32)
        for resource in range(self.shape[1]):  # one at a time, as the table may be of float64
            rows = self.resource == resource
            flat[rows] = table[self.service[rows], resource]
        return flat

    def unflatten(self, values: AnyFloats) -> Floats:
        """(n_series, ...) -> (n_services, n_resources, ...), NaN where there is no series."""
        table = np.full((*self.shape, *values.shape[1:]), np.nan)
        table[self.service, self.resource] = values
        return table

    def identities(self, services: tuple[ServiceKey, ...]) -> Ints:
        """A number for each series that neither other services nor the order of the list change: (n_series,)."""
        of_service = np.array([zlib.crc32(str(service).encode()) for service in services], dtype=np.int64)
        return np.asarray(of_service[self.service] + self.resource, dtype=np.int64)
