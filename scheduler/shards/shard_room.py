"""How much room each shard has, by requests and by the forecast; and which nodes go from one shard to another, so that
every shard has about the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from base.arrays import Floats, Ints
from cluster.assuming_cluster import AssumingCluster
from forecast.resources import CPU, MEMORY

_KINDS = ("cpu", "memory")


def nodes_to_move(
    rooms: Mapping[int, float],
    mine: Sequence[int],
    rows: Ints,
    shard_of: Ints,
    room_of: Floats,
    *,
    most_difference: float,
    most: int,
) -> list[tuple[int, int]]:
    """Return rows of own nodes and the shards that they are to go to.

    rooms           : of all shards, by number
    mine            : numbers of own shards, the only ones that give
    rows, shard_of, room_of : (n_nodes,) own nodes that may go, the shard of each, and its room in the unit of `rooms`
    most_difference : from the mean, as a share of it: a shard within it neither gives nor takes
    most            : nodes at once

    A node goes only where that leaves both shards nearer to the mean: the largest first, to the shard with the least.
    """
    left = dict(rooms)
    mean = sum(left.values()) / max(1, len(left))
    moves: list[tuple[int, int]] = []
    nodes = {number: [at for at in range(len(rows)) if shard_of[at] == number] for number in mine}
    for of_shard in nodes.values():
        of_shard.sort(key=lambda at: (-room_of[at], rows[at]))
    for source in sorted(mine, key=lambda number: (-left[number], number)):
        for at in nodes[source]:
            room = float(room_of[at])
            target = min(left, key=lambda number: (left[number], number))
            if len(moves) >= most or left[source] <= mean * (1 + most_difference):
                break
            if room <= 0 or left[target] + room > left[source] - room:
                continue  # a smaller node may do
            left[source] -= room
            left[target] += room
            moves.append((int(rows[at]), target))
    return moves


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
