"""A what-if that last week cannot know: shortly before the placement some services get twice the replicas.

Each pod shares its load with a new one, so the total stays: a pod will use half of what it used last week.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from base.arrays import Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History, PodUsage
from scorer.replay.window import Window

SLOTS_BEFORE = 4
"""Two hours: live usage knows the new pods when the placement begins, and the model of last midnight does not."""


def doubled_replicas(history: History, pods: PodUsage, window: Window, chosen: Ints) -> tuple[History, PodUsage]:
    """The history and its pods as if some services had twice the replicas of half the size from then on.

    pods   : at least of the days of the window
    chosen : (n_chosen,) services; their total load and their total requests stay
    """
    first_slot = pods.days.index(window.days[0]) * SLOTS_PER_DAY + window.first_slot
    later = _half_from(first_slot - SLOTS_BEFORE, len(pods.days))
    halved = np.isin(pods.service, chosen)  # (n_pods,)
    usage, requests = pods.usage.copy(), pods.requests.copy()
    usage[halved] *= later
    requests[halved] *= 0.5
    twins = np.flatnonzero(halved & ((pods.present > 0) & (later < 1)).any(axis=(1, 2)))
    together = replace(
        pods,
        pods=(*pods.pods, *(f"{pods.pods[pod]}-twin" for pod in twins)),
        service=np.concatenate([pods.service, pods.service[twins]]),
        requests=np.concatenate([requests, requests[twins]]),
        usage=np.concatenate([usage, usage[twins]]),
        present=np.concatenate([pods.present, np.where(later < 1, pods.present[twins], 0)]),
        node=np.concatenate([pods.node, pods.node[twins]]),
        row=np.concatenate([pods.row, np.full(len(twins), -1)]),
    )
    later = _half_from(window.history_slot - SLOTS_BEFORE, history.n_days)
    usage_per_pod, replicas = history.usage_per_pod.copy(), history.replicas.copy()
    usage_per_pod[chosen] *= later
    replicas[chosen] /= later
    return replace(history, usage_per_pod=usage_per_pod, replicas=replicas), together


def _half_from(slot: int, n_days: int) -> Floats32:
    """(n_days, 48): 1 before the slot, 0.5 from it on."""
    return np.where(np.arange(n_days * SLOTS_PER_DAY) < slot, 1.0, 0.5).astype(np.float32).reshape(n_days, -1)
