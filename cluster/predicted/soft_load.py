"""Room kept for pods that are not there yet: the evening's replicas of autoscaled services."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Bools


def soft_load(
    extra: AnyFloats,
    usage: AnyFloats,
    requests: AnyFloats,
    free: AnyFloats,
    size: AnyFloats,
    usable: Bools | None = None,
) -> AnyFloats:
    """Expected load of replicas still to come, on the nodes that could take them: (n_nodes, n_resources, n_slots).

        soft[n] = sum over s of extra_s * u_s * part[n, s]

    where part[n, s] distributes a pod over the usable nodes with room for its request, by their size. If no usable node
    has room, the pod presses on all usable nodes. A service that can use no node adds nothing.

    extra    : (n_scaled, n_slots) expected replicas beyond those there are, of autoscaled services
    usage    : (n_scaled, n_resources, n_slots) of one pod
    requests : (n_scaled, 2) of one pod, CPU cores and memory bytes
    free     : (n_nodes, 2) not requested yet
    size     : (n_nodes,) 0 = takes no pods
    usable   : (n_nodes, n_scaled) nodes that pods of each service could use if they were empty; None = every node
    """
    could = np.broadcast_to((size > 0)[:, None], (len(size), len(extra)))
    if usable is not None:
        could = could & usable
    room = could & (free[:, None] >= requests).all(axis=2)  # (n_nodes, n_scaled)
    nodes = np.where(room.any(axis=0), room, could)
    # Most services have the same nodes: each distinct column is multiplied once.
    _, first, of_service = np.unique(np.packbits(nodes, axis=0), axis=1, return_index=True, return_inverse=True)
    part = np.where(nodes[:, first], size[:, None], 0.0)  # (n_nodes, n_distinct)
    part = (part / np.maximum(part.sum(axis=0), np.finfo(np.float32).tiny)).astype(usage.dtype)
    chosen = (np.arange(len(first))[:, None] == of_service.reshape(-1)).astype(usage.dtype)  # (n_distinct, n_scaled)
    load = np.tensordot(
        chosen, extra[:, None].astype(usage.dtype) * usage, axes=1
    )  # (n_distinct, n_resources, n_slots)
    return np.asarray(np.tensordot(part, load, axes=1))
