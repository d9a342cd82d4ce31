"""Affinity terms of pods that sit, which pods that come later meet."""

from __future__ import annotations

from scorer.cluster.objects import PodInfo

__all__ = ["AffinityTerms"]


class AffinityTerms:
    """By row."""

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
