"""Nodes for which the volume of a claim could not be made.

A provisioner that gives up takes the chosen node off the claim, and says no more. The same node would be chosen again,
as the best one, and the pod wait for ever while other nodes could have it: for a while such nodes come last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

_MOST_CLAIMS: Final = 10_000
_MOST_NODES: Final = 1_000
"""Of one claim."""


class ProvisioningFailures:
    """Under the lock of the tables. seconds: how long a failure counts; clock: seconds."""

    def __init__(self, *, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._of: dict[str, dict[str, float]] = {}  # by UID of the claim: until when, by node; the latest last

    def add(self, claim_uid: str, node: str) -> None:
        """It failed just now."""
        nodes = self._of.pop(claim_uid, {})
        nodes.pop(node, None)
        nodes[node] = self._clock() + self._seconds
        while len(nodes) > _MOST_NODES:
            del nodes[next(iter(nodes))]
        self._of[claim_uid] = nodes
        while len(self._of) > _MOST_CLAIMS or self._is_over(next(iter(self._of))):
            del self._of[next(iter(self._of))]

    def nodes(self, claim_uid: str) -> Collection[str]:
        """Where it failed lately."""
        now = self._clock()
        # A clock that was set back makes no failure count for longer.
        return [node for node, until in self._of.get(claim_uid, {}).items() if 0 < until - now <= self._seconds]

    def _is_over(self, claim_uid: str) -> bool:
        return max(self._of[claim_uid].values()) <= self._clock()
