"""Which replica places a unit: worked out by each replica from the Leases of the shards, without a write.

Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker 2005): a unit goes
to the shard with the highest -weight / log(hash), and to who holds that shard. Like pods have one unit and go together.
A shard with twice the room gets twice the units, and one that changes hands moves no unit of another. Where two
replicas see the Leases at different moments, both may try the same pod: the API server binds it once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

_STEP: Final = 2**0.5
"""Weights count in powers of this: small changes of the room move no unit."""

_SCALE: Final = 2.0**-64
_MOST_KNOWN: Final = 200_000


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
