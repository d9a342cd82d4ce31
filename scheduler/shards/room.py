"""How much room each shard has, by requests and by the forecast: what units are sent by, and nodes are moved by."""

from __future__ import annotations

import numpy as np

from base.arrays import Floats, Ints
from cluster.assuming_cluster import AssumingCluster
from forecast.resources import CPU, MEMORY

_KINDS = ("cpu", "memory")


def node_rooms(cluster: AssumingCluster) -> Floats:
    """(n_rows, 2) share of the cluster's allocatable CPU and memory that each node has left, at least 0.

    The lesser of what is not requested and of what is not predicted to be used at the peak. Nodes that take no pods
    have none.
    """
    state = cluster.state
    columns = [state.kinds[kind] for kind in _KINDS]
    allocatable = state.allocatable[:, columns]
    left = allocatable - state.requested[:, columns]
    if cluster.predicted is not None:
        n_rows = min(cluster.predicted.load.n_nodes, state.n_rows)
        peaks = cluster.predicted.load.peaks(np.arange(n_rows))[:, [CPU, MEMORY]]
        capacity = cluster.capacity[:n_rows][:, [CPU, MEMORY]]
        unused = np.where(np.isfinite(capacity), capacity * (1.0 - peaks), np.inf)
        left[:n_rows] = np.minimum(left[:n_rows], unused)
    takes = np.array(
        [node is not None and node.ready and not node.unschedulable for node in state.nodes[: state.n_rows]]
    )
    left = np.where(takes[:, None], np.maximum(left, 0.0), 0.0)
    return np.asarray(left / np.maximum(allocatable.sum(axis=0), 1e-9))


def shard_rooms(rooms: Floats, shards: Ints, count: int) -> Floats:
    """(count,) the scarcer of both resources in each shard.

    rooms : (n_rows, 2), see `node_rooms`; shards: (n_rows,), -1 = no node
    """
    sums = np.zeros((count, rooms.shape[1]))
    there = shards >= 0
    np.add.at(sums, shards[there], rooms[there])
    return np.asarray(sums.min(axis=1))
