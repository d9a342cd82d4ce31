"""What services use now, from what is measured of their pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from base.arrays import Floats
from cluster.live_tables import LiveTables
from forecast.resources import CPU
from forecast.service_key import ServiceKey

_LEAST_MEASURED: Final = 0.5
"""Share of a service's pods that must be measured. Those that have just started are not, and use little."""


@dataclass(frozen=True, slots=True)
class PodsNow:
    """Usage of pods as last measured.

    usage  : (namespace, name) -> (n_resources,) base units; NaN = not measured
    middle : unix seconds of the middle of the time that was measured
    """

    usage: Mapping[tuple[str, str], Floats]
    middle: float


class PodUsageSource(Protocol):
    """A source of the usage of pods. Raises base.errors.ForecastError if it cannot be read."""

    def pods(self) -> PodsNow:
        """Usage of all pods now: a fixed number of requests, whatever the number of pods."""


class LastReading:
    """Keeps what was last read, for who asks about a single pod; implements PodUsageSource.

    clock : unix seconds; fresh: seconds for which a reading counts
    """

    def __init__(self, source: PodUsageSource, *, clock: Callable[[], float], fresh: float) -> None:
        self._source, self._clock, self._fresh = source, clock, fresh
        self._last: PodsNow | None = None

    def pods(self) -> PodsNow:
        """Read the usage of all pods now, and keep it."""
        self._last = self._source.pods()
        return self._last

    def cores(self, namespace: str, name: str) -> float | None:
        """CPU cores that a pod uses; None = not measured, or too long ago."""
        last = self._last
        if last is None or self._clock() - last.middle > self._fresh:
            return None
        found = last.usage.get((namespace, name))
        return None if found is None or not np.isfinite(found[CPU]) else float(found[CPU])


def used_by_service(
    tables: LiveTables, measured: PodsNow, services: tuple[ServiceKey, ...], n_resources: int
) -> Floats:
    """What the pods of each service use together: (n_services, n_resources); NaN = too few of them are measured."""
    row_of = {service: row for row, service in enumerate(services)}
    with tables.reading() as cluster:
        state = cluster.state
        rows = {number: row_of[key] for number, key in enumerate(state.services) if key in row_of}
        seats = [(rows[seat.service], state.pods[uid]) for uid, seat in state.seat_of.items() if seat.service in rows]
    # 100,000 pods take a second: without the lock.
    nothing = np.full(n_resources, np.nan)
    row = np.array([row for row, _ in seats], dtype=np.int64)
    usage = np.array([measured.usage.get((pod.namespace, pod.name), nothing) for _, pod in seats], dtype=np.float64)
    usage = usage.reshape(len(seats), n_resources)
    is_known = np.isfinite(usage)
    used, known = np.zeros((2, len(services), n_resources))
    np.add.at(used, row, np.where(is_known, usage, 0.0))
    np.add.at(known, row, is_known)
    pods = np.bincount(row, minlength=len(services))
    return np.where((known > 0) & (known >= _LEAST_MEASURED * pods[:, None]), used, np.nan)
