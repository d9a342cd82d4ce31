"""How often the usage that came passed a recommendation: on recorded days that the forecast did not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autoscaling.requests.recommending import Recommendation
from forecast.arrays import Floats
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording

_CLOSE = 1 + 1e-6


@dataclass(frozen=True, slots=True)
class Risk:
    """Shares of the half hours of single pods; NaN = the service had no pods, or was left alone.

    cpu    : (n_services,) usage passed the CPU request of the hour; the pod got more as long as its node had more
    memory : (n_services,) usage passed the memory request
    cpu_of_all, memory_of_all : over all pods of services with a recommendation
    """

    cpu: Floats
    memory: Floats
    cpu_of_all: float
    memory_of_all: float


def risk_of(recording: Recording, found: Sequence[Recommendation]) -> Risk:
    """Hold recommendations against the recorded window; `found` is for the services of the recording, in order."""
    n_services = recording.n_services
    over, there = np.zeros((n_services, 2)), np.zeros((n_services, 2))
    limits = np.array([one.by_slot * _CLOSE for one in found])
    memory = np.array([np.nan if one.memory_bytes is None else one.memory_bytes * _CLOSE for one in found])
    known = np.array([one.because is None for one in found])
    for pod, service in enumerate(recording.service.tolist()):
        if not known[service]:
            continue
        present = recording.present[pod] > 0
        used = recording.load[pod][:, present] / recording.present[pod][present]
        over[service, 0] += (used[CPU] > limits[service][present]).sum()
        there[service, 0] += present.sum()
        if np.isfinite(memory[service]):
            over[service, 1] += (used[MEMORY] > memory[service]).sum()
            there[service, 1] += present.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        shares, total = over / there, over.sum(axis=0) / there.sum(axis=0)
    return Risk(cpu=shares[:, 0], memory=shares[:, 1], cpu_of_all=float(total[0]), memory_of_all=float(total[1]))
