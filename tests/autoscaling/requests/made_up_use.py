"""What made-up services use over a week that begins on a Monday at midnight."""

from __future__ import annotations

import numpy as np

from autoscaling.requests.use import PodUseOfService
from base.arrays import Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.hidden_demand import HiddenDemand
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

N_SLOTS = 7 * SLOTS_PER_DAY
HOUR = np.arange(N_SLOTS) % SLOTS_PER_DAY // 2
EVENING = HOUR >= 18
GIB = 2.0**30


def use_with(
    cores: dict[str, Floats],
    *,
    replicas: float = 10.0,
    std: float = 0.0,
    request: float = 1.0,
    kind: str = "Deployment",
    disk: dict[str, Floats] | None = None,
) -> PodUseOfService:
    """cores, disk: by name of a service, (N_SLOTS,) of one pod. Memory: 1 GiB. Five nodes have 20 cores each."""
    n = len(cores)
    mean = np.zeros((n, len(RESOURCES), N_SLOTS))
    mean[:, CPU] = list(cores.values())
    mean[:, MEMORY] = GIB
    for row, name in enumerate(cores):
        mean[row, 2] = (disk or {}).get(name, np.zeros(N_SLOTS))
    deviation = np.zeros_like(mean)
    deviation[:, CPU] = std
    return PodUseOfService(
        services=tuple(ServiceKey("shop", kind, name) for name in cores),
        mean=mean,
        std=deviation,
        highest_memory=np.full(n, GIB),
        replicas=np.full((n, N_SLOTS), replicas),
        requests=np.tile([request, 2 * GIB], (n, 1)),
        measured=np.ones((n, 2), dtype=np.bool_),
        ending=np.full(n, kind in ("Job", "CronJob")),
        hidden=HiddenDemand.none(n),
        is_workday=np.arange(N_SLOTS) < 5 * SLOTS_PER_DAY,
        hour=HOUR,
        capacity=np.array([100.0, 400 * GIB, 1000.0, np.nan, np.nan]),
        allocatable=np.array([100.0, 400 * GIB]),
        n_nodes=5,
    )
