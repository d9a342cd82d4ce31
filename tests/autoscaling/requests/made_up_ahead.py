"""A forecast of services whose pods need much in the evening of 14 September 2026 and little before."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from autoscaling.services_ahead import ServicesAhead
from cluster.predicted.horizon import Horizon
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

DAY = date(2026, 9, 14)
RAMP = 18
"""Hour from which the evening lasts, until midnight."""
_DAYS, _SLOTS = 3, 48


def at(hour: float) -> float:
    """Unix seconds of an hour of that day."""
    return datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp() + 3600 * hour


def evening_ahead(
    services: tuple[ServiceKey, ...], *, low: float = 0.16, high: float = 0.8, replicas: float = 4.0, gib: float = 0.5
) -> ServicesAhead:
    """One pod uses `low` cores by day and `high` in the evening, without an error."""
    n = len(services)
    curve = np.tile(np.where(np.arange(_SLOTS) >= 2 * RAMP, high, low), _DAYS)
    load = np.zeros((n, len(RESOURCES), _DAYS * _SLOTS))
    load[:, CPU] = replicas * curve
    load[:, MEMORY] = replicas * gib * 2.0**30
    return ServicesAhead(
        services=services,
        examples=(),
        replicas=np.full(n, replicas),
        requests=np.tile([1.0, 2.0**30], (n, 1)),
        autoscaled=np.zeros(n, dtype=np.bool_),
        expected_replicas=np.full((n, _DAYS * _SLOTS), replicas),
        load=load,
        std=np.zeros_like(load),
        horizon=Horizon(tuple(DAY + timedelta(days=i) for i in range(_DAYS)), 0, ZoneInfo("UTC")),
    )
