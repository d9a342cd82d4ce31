"""How often the usage that came passed a recommendation: on recorded days that the forecast did not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autoscaling.requests.recommending import Recommendation
from base.arrays import Floats
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording

_CLOSE = 1 + 1e-6


@dataclass(frozen=True, slots=True)
class Risk:
    """Shares of the half hours of single pods; NaN = the service had no pods, or was left alone.

    cpu         : (n_services,) usage passed the CPU request for all hours; the pod got more if its node had more
    cpu_by_hour : (n_services,) the same of the request that follows the hour, where it does
    memory      : (n_services,) usage passed the memory request
    of_all      : the three over all pods of services with a recommendation
    """

    cpu: Floats
    cpu_by_hour: Floats
    memory: Floats
    of_all: tuple[float, float, float]


def risk_of(recording: Recording, found: Sequence[Recommendation]) -> Risk:
    """Hold recommendations against the recorded window; `found` is for the services of the recording, in order."""
    over, there = np.zeros((recording.n_services, 3)), np.zeros((recording.n_services, 3))
    for pod, service in enumerate(recording.service.tolist()):
        one = found[service]
        if one.because is not None:
            continue
        present = recording.present[pod] > 0
        used = recording.load[pod][:, present] / recording.present[pod][present]
        memory = np.nan if one.memory_bytes is None else one.memory_bytes
        limits = (one.once, one.by_slot[present], memory)
        for column, (resource, limit) in enumerate(zip((CPU, CPU, MEMORY), limits, strict=True)):
            if np.isfinite(limit).all():
                over[service, column] += (used[resource] > limit * _CLOSE).sum()
                there[service, column] += present.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        shares, total = over / there, over.sum(axis=0) / there.sum(axis=0)
    once, by_hour, memory_share = total.tolist()
    return Risk(shares[:, 0], shares[:, 1], shares[:, 2], (once, by_hour, memory_share))
