"""When a pod that was moved may be moved again, and where it may never go: no plan plays ping-pong.

A move costs a restart. A pod that is moved every night was moved for nothing, and one that goes back to a node it left
proves that one of the two moves was wrong. Users of reactive movers complain of both most (descheduler #994, #616).

Nights are numbers of local days (`date.toordinal`). Pure: the caller keeps the past moves and passes them in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CooldownOptions:
    """How long a pod that was moved is left alone."""

    nights: int = 2
    """Nights that a pod rests after its first move. Each further move doubles them."""

    longest_nights: int = 32
    """Nights that a pod rests at most."""

    no_return_days: int = 14
    """Days for which a pod does not go back to a node that it was moved away from: two of its weeks."""

    remember_days: int = 28
    """Days after which a move counts no more for the doubling."""


@dataclass(frozen=True, slots=True)
class PastMove:
    """A pod was moved in the night `night` away from the node `source`."""

    night: int
    source: str | int


def first_night(moves: Sequence[PastMove], options: CooldownOptions) -> int | None:
    """The first night on which the pod may be moved again; None = any, it has not been moved.

    moves : of one pod, oldest first
    """
    if not moves:
        return None
    last = moves[-1].night
    counted = sum(last - move.night < options.remember_days for move in moves)
    rests: int = min(options.nights * 2 ** (counted - 1), max(options.longest_nights, options.nights))
    return last + rests + 1


def may_move(moves: Sequence[PastMove], night: int, options: CooldownOptions) -> bool:
    """Whether the pod has rested long enough."""
    first = first_night(moves, options)
    return first is None or night >= first


def nodes_left(moves: Collection[PastMove], night: int, options: CooldownOptions) -> frozenset[str | int]:
    """The nodes that the pod may not go to, since it was moved away from them lately."""
    return frozenset(move.source for move in moves if night - move.night < options.no_return_days)
