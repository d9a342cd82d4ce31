"""Room kept for pods that are not there yet: the evening's replicas of autoscaled services."""

from __future__ import annotations

import numpy as np

from forecast.arrays import Floats
from scorer.replay.cluster_state import ClusterState
from scorer.replay.curves import CurveForecast

__all__ = ["soft_load"]


def soft_load(forecast: CurveForecast, state: ClusterState) -> Floats:
    """Expected load of replicas still to come, on the nodes that could take them: (n_nodes, n_resources, n_slots).

        soft[n] = sum over autoscaled s of max(0, expected replicas_s - replicas_s now) * u_s * part[n, s]

    where part[n, s] shares a pod among the nodes with room for its request, by their size. What no node could take is
    shared among all: it will press on somebody. Pods that are about to be placed in this slot are there already: they
    count as replicas now, and take room on all nodes, by their size, as nobody knows yet where they go.
    """
    n_nodes = len(state.capacity)
    n_resources, n_slots = forecast.mean.shape[1:]
    scaled = np.flatnonzero(forecast.autoscaled)
    now = state.counts[:, scaled].sum(axis=0) + state.arriving[scaled]  # (n_scaled,)
    extra = np.maximum(forecast.replicas[scaled] - now[:, None], 0.0)  # (n_scaled, n_slots)
    if not extra.any():
        return np.zeros((n_nodes, n_resources, n_slots))
    size = np.where(np.isfinite(state.allocatable[:, 0]), state.allocatable[:, 0], 1.0)
    arriving = np.outer(size / size.sum(), state.arriving @ state.service_requests)  # (n_nodes, 2)
    free = np.maximum(state.allocatable - state.requested - arriving, 0.0)  # (n_nodes, 2)
    room = (free[:, None] >= state.service_requests[scaled]).all(axis=2)  # (n_nodes, n_scaled)
    part = np.where(room | ~room.any(axis=0), size[:, None], 0.0)
    part /= part.sum(axis=0)
    load = extra[:, None] * forecast.mean[scaled]  # (n_scaled, n_resources, n_slots)
    return np.asarray(np.tensordot(part, load, axes=1))
