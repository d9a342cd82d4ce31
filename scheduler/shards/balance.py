"""Which nodes go from one shard to another, so that every shard has about the same room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from base.arrays import Floats, Ints


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
