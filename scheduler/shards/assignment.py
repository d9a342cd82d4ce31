"""Which replica should hold which shards: decided alike by all replicas, from what they see of the Leases.

A free shard goes to the replica with the least room, which takes it by itself. A replica with too much gives a shard
back, and the same rule finds its next holder. Nothing moves unless that makes the loads differ less.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_GAIN: Final = 0.25
"""Of a shard's room: what a move has to gain beyond even loads, or figures that change would send shards to and fro."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard as its Lease shows it. holder: '' = it is free; room: share of the cluster's room, see room.py."""

    number: int
    holder: str
    room: float


def to_take(me: str, members: Iterable[str], shards: Sequence[ShardState]) -> list[int]:
    """Return the free shards that this replica is to take."""
    loads = _loads(members, shards)
    taken = []
    for shard in sorted((one for one in shards if not one.holder), key=lambda one: (-one.room, one.number)):
        if not loads:
            break
        member = min(loads, key=lambda name: (loads[name], _rank(name, shard.number)))
        loads[member] += shard.room
        if member == me:
            taken.append(shard.number)
    return taken


def to_give(me: str, members: Iterable[str], shards: Sequence[ShardState]) -> list[int]:
    """Return the shards of this replica that another one is to have."""
    loads = _loads(members, shards)
    if me not in loads or len(loads) < 2:
        return []
    given = []
    mine = sorted((one for one in shards if one.holder == me), key=lambda one: (-one.room, one.number))
    for shard in mine[:-1]:  # one stays
        least = min(loads, key=lambda name: (loads[name], name))
        if least == me or loads[least] + (1 + _GAIN) * shard.room > loads[me]:
            continue
        loads[me] -= shard.room
        loads[least] += shard.room
        given.append(shard.number)
    return given


def even_rooms(rooms: Mapping[int, float]) -> dict[int, float]:
    """Return the same rooms with a mean of 1; all alike where nothing is known or all is full."""
    mean = sum(rooms.values()) / max(1, len(rooms))
    if mean <= 0:
        return dict.fromkeys(rooms, 1.0)
    # A full shard still has nodes to look after, and pods that leave them.
    return {number: max(room / mean, 0.1) for number, room in rooms.items()}


def _loads(members: Iterable[str], shards: Sequence[ShardState]) -> dict[str, float]:
    loads = dict.fromkeys(sorted(members), 0.0)
    for shard in shards:
        if shard.holder in loads:
            loads[shard.holder] += shard.room
    return loads


def _rank(member: str, shard: int) -> tuple[int, str]:
    return zlib.crc32(f"{shard}/{member}".encode()), member
