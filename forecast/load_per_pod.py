"""What one pod would have used in the past with as many replicas as there are now."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats, Floats32
from forecast.history import History
from forecast.replicas import ReplicaForecast
from forecast.resources import MEMORY, RESOURCES


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
