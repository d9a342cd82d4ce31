"""Room that a replay keeps for pods that are not there yet: the evening's replicas of autoscaled services."""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats
from scorer.predicted.soft_load import soft_load
from scorer.replay.cluster_state import ClusterState
from scorer.replay.curves import CurveForecast


def replicas_to_come(forecast: CurveForecast, state: ClusterState) -> AnyFloats:
    """Expected load of replicas still to come: (n_nodes, n_resources, n_slots).

    Owners of Jobs are not autoscaled: as in the scorer (scorer.scale_out), no room is kept for tomorrow's runs.

    Pods that are about to be placed in this slot are there already: they count as replicas now, and take room on all
    nodes, by their size, as nobody knows yet where they go.
    """
    scaled = np.flatnonzero(forecast.autoscaled)
    now = state.counts[:, scaled].sum(axis=0) + state.arriving[scaled]  # (n_scaled,)
    extra = np.maximum(forecast.replicas[scaled] - now[:, None], 0.0)  # (n_scaled, n_slots)
    if not extra.any():
        return np.zeros((len(state.capacity), *forecast.mean.shape[1:]))
    size = np.where(np.isfinite(state.allocatable[:, 0]), state.allocatable[:, 0], 1.0)
    arriving = np.outer(size / size.sum(), state.arriving @ state.service_requests)  # (n_nodes, 2)
    free = np.maximum(state.allocatable - state.requested - arriving, 0.0)  # (n_nodes, 2)
    return soft_load(extra, forecast.mean[scaled], state.service_requests[scaled], free, size)
