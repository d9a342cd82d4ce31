"""Settings of preemption."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["SYSTEM_CRITICAL", "PreemptionOptions"]

SYSTEM_CRITICAL = 2_000_000_000
"""Priority of system-cluster-critical (pkg/apis/scheduling/types.go): nobody is protected from such pods."""


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """
    protect_started_seconds : pods younger than this are no victims: what has just been started, perhaps for having been
                              preempted elsewhere, is not driven on at once. 0 = nobody is protected
    least_candidates, candidates_share : where more than requests is in the way nodes are tried one by one: at most this
                              share of them, but not fewer than this number (100 and 0.1 in kube-scheduler's
                              DefaultPreemptionArgs). Each takes 15 ms at 1,000 nodes, 50 at 5,000, in which
                              nothing else is scheduled
    """

    protect_started_seconds: float = 60.0
    least_candidates: int = 8
    candidates_share: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.protect_started_seconds) and self.protect_started_seconds >= 0):
            raise InputError(
                f"pods cannot be protected from preemption for {self.protect_started_seconds!r} s: "
                "give 0 (not at all) or more seconds"
            )
        if self.least_candidates < 1:
            raise InputError(f"{self.least_candidates!r} candidate nodes are too few to choose from: give 1 or more")
        if not 0 <= self.candidates_share <= 1:
            raise InputError(
                f"{self.candidates_share!r} is no share of the nodes to be tried by preemption: give 0 to 1"
            )

    def most_candidates(self, n_nodes: int) -> int:
        """How many of so many nodes are tried one by one (calculateNumCandidates)."""
        return max(self.least_candidates, int(n_nodes * self.candidates_share))
