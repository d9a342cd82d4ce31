"""Which replica should hold which shards, and which one places a unit: decided alike by all replicas, from what they
see of the Leases, without a write.

A free shard goes to the replica with the least room, which takes it by itself. A replica with too much gives a shard
back, and the same rule finds its next holder. Nothing moves unless that makes the loads differ less.

Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker 2005): a unit goes
to the shard with the highest -weight / log(hash), and to who holds that shard. Like pods have one unit and go together.
A shard with twice the room gets twice the units, and one that changes hands moves no unit of another. Where two
replicas see the Leases at different moments, both may try the same pod: the API server binds it once.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

_GAIN: Final = 0.25
"""Of a shard's room: what a move has to gain beyond even loads, or figures that change would send shards to and fro."""

_STEP: Final = 2**0.5
"""Weights count in powers of this: small changes of the room move no unit."""

_SCALE: Final = 2.0**-64
_MOST_KNOWN: Final = 200_000


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard as its Lease shows it. holder: '' = it is free; room: share of the cluster's room, see shard_room.py."""

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


# Which replica places a unit: worked out by each replica from the Leases of the shards, without a write.
#
# Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker 2005): a unit goes
# to the shard with the highest -weight / log(hash), and to who holds that shard. Like pods have one unit and go
# together. A shard with twice the room gets twice the units, and one that changes hands moves no unit of another. Where
# two replicas see the Leases at different moments, both may try the same pod: the API server binds it once.


@dataclass(frozen=True, slots=True)
class LiveShard:
    """A shard that a live replica holds. weight: its room, 1 = as much as the mean."""

    number: int
    holder: str
    weight: float


@dataclass(slots=True)
class Dispatcher:
    """The order in which replicas try a unit, for one state of the shards."""

    shards: Sequence[LiveShard]
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def in_order(self, unit: str) -> tuple[str, ...]:
        """Return all replicas that hold a shard, the one that is to place the unit first."""
        known = self._known.get(unit)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[unit] = self._ordered(unit)
        return known

    def _ordered(self, unit: str) -> tuple[str, ...]:
        ranked = sorted(self.shards, key=lambda one: (-_score(unit, one), one.number))
        return tuple(dict.fromkeys(one.holder for one in ranked))


def dispatcher(holders: Mapping[int, str], rooms: Mapping[int, float]) -> Dispatcher:
    """Return the dispatcher of shards that live replicas hold. rooms: with a mean of 1, see `even_rooms`."""
    return Dispatcher(
        [LiveShard(number, holder, _rounded(rooms.get(number, 1.0))) for number, holder in sorted(holders.items())]
    )


def _rounded(weight: float) -> float:
    return float(_STEP ** round(math.log(max(weight, 1e-3), _STEP)))


def _score(unit: str, shard: LiveShard) -> float:
    digest = blake2b(unit.encode(), digest_size=8, salt=shard.number.to_bytes(2, "big")).digest()
    share = (int.from_bytes(digest, "big") + 0.5) * _SCALE
    return -shard.weight / math.log(share) if share < 1.0 else math.inf
