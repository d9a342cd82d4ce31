"""Services with a forecast as a test wants it, and nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from autoscaling.nodes.guard import GuardedNodes
from autoscaling.services_ahead import ServicesAhead
from cluster.predicted.horizon import Horizon
from forecast.resources import CPU, RESOURCES
from forecast.service_key import ServiceKey
from testing.objects import pod_info

DAYS = (date(2026, 3, 2), date(2026, 3, 3))
GIB = 2.0**30


def at(hour: float) -> float:
    """Unix seconds of an hour of the first day."""
    return datetime(2026, 3, 2, tzinfo=UTC).timestamp() + 3600 * hour


def ramp(low: float, high: float, *, since: float = 8, until: float = 10) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(96,) replicas that rise between two hours of the first day, and stay."""
    hours = (np.arange(96) + 0.5) / 2
    return np.interp(hours, [since, until], [low, high])


def services_ahead(
    replicas: Sequence[float],
    expected: Sequence[Any],
    *,
    cpu: Sequence[float] | None = None,
    error: float = 0.0,
    autoscaled: Sequence[bool] | None = None,
    pods: Sequence[dict[str, Any]] | None = None,
) -> ServicesAhead:
    """Services of one GiB a core; error: of the load, relative; pods: fields of the example of each service."""
    n = len(replicas)
    cores = np.array(cpu if cpu is not None else [1.0] * n)
    requests = np.stack([cores, cores * GIB], axis=1)
    curves = np.array([np.broadcast_to(one, 96) for one in expected], dtype=np.float64).reshape(n, 96)
    load = np.zeros((n, len(RESOURCES), 96))
    load[:, CPU] = curves * 0.5
    fields = pods or [{}] * n
    return ServicesAhead(
        services=tuple(ServiceKey("shop", "Deployment", f"s{i}") for i in range(n)),
        examples=tuple(
            pod_info(f"s{i}", **({"requests": {"cpu": cores[i], "memory": cores[i] * GIB}} | fields[i]))
            for i in range(n)
        ),
        replicas=np.array(replicas, dtype=np.float64),
        requests=requests,
        autoscaled=np.array(autoscaled if autoscaled is not None else [True] * n),
        expected_replicas=curves,
        load=load,
        std=load * error,
        horizon=Horizon(DAYS, 0, ZoneInfo("UTC")),
    )


def nodes_with(requested: Sequence[float], *, cores: float = 10.0, **columns: Any) -> GuardedNodes:
    """Nodes n0, n1, ... of equal size, on which pods request so many cores, and a GiB for each."""
    n = len(requested)
    return GuardedNodes(
        names=tuple(f"n{i}" for i in range(n)),
        allocatable=np.tile([cores, 2 * cores * GIB], (n, 1)),
        requested=np.stack([np.array(requested), np.array(requested) * GIB], axis=1),
        usable=np.array(columns.get("usable", [True] * n), dtype=np.bool_),
        until=np.array(columns.get("until", [0.0] * n), dtype=np.float64),
    )
