"""States of one move of a RebalancePlan. The executor writes them (rebalancer/execution), and parts that place pods
read from them which nodes are kept for replacements.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MoveState(StrEnum):
    """The state machine is drawn in rebalancer/execution/next_step.py."""

    PLANNED = "planned"
    SURGING = "surging"
    EVICTING = "evicting"
    EVICTED = "evicted"
    REPLACED = "replaced"
    WITHDRAWING = "withdrawing"
    DONE = "done"
    SKIPPED = "skipped"
    REFUSED = "refused"
    ELSEWHERE = "elsewhere"
    STUCK = "stuck"

    @property
    def is_final(self) -> bool:
        """Return whether the move is over."""
        return self in _FINAL

    @property
    def is_under_way(self) -> bool:
        """Return whether the move has begun and is not over."""
        return self is not MoveState.PLANNED and self not in _FINAL

    @property
    def reserves_target(self) -> bool:
        """Return whether a replacement may still be created, which is to go to the target."""
        return self in _RESERVING


_FINAL: Final = frozenset({MoveState.DONE, MoveState.SKIPPED, MoveState.REFUSED, MoveState.ELSEWHERE, MoveState.STUCK})
_RESERVING: Final = frozenset({MoveState.SURGING, MoveState.EVICTING, MoveState.EVICTED})
