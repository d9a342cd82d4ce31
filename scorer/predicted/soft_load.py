"""Room kept for pods that are not there yet: the evening's replicas of autoscaled services."""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats

__all__ = ["soft_load"]


def soft_load(extra: AnyFloats, usage: AnyFloats, requests: AnyFloats, free: AnyFloats, size: AnyFloats) -> AnyFloats:
    """Expected load of replicas still to come, on the nodes that could take them: (n_nodes, n_resources, n_slots).

        soft[n] = sum over s of extra_s * u_s * part[n, s]

    where part[n, s] shares a pod among the nodes with room for its request, by their size. What no node could take is
    shared among all: it will press on somebody.

    extra    : (n_scaled, n_slots) expected replicas beyond those there are, of autoscaled services
    usage    : (n_scaled, n_resources, n_slots) of one pod
    requests : (n_scaled, 2) of one pod, CPU cores and memory bytes
    free     : (n_nodes, 2) not requested yet
    size     : (n_nodes,) 0 = takes no pods
    """
    room = (free[:, None] >= requests).all(axis=2) & (size > 0)[:, None]  # (n_nodes, n_scaled)
    part = np.where(room | ~room.any(axis=0), size[:, None], 0.0)
    part = (part / np.maximum(part.sum(axis=0), np.finfo(np.float32).tiny)).astype(usage.dtype)
    load = extra[:, None].astype(usage.dtype) * usage  # (n_scaled, n_resources, n_slots)
    return np.asarray(np.tensordot(part, load, axes=1))
