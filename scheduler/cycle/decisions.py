"""What a scheduling cycle decided about the pods of one unit, and how the node of each stood among the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Floats, Ints
from placement.policies.policy import Policy
from scheduler.queue.queued_pods import QueuedPodInfo


@dataclass(frozen=True, slots=True)
class Rejected:
    """Pods without a node, for the same reason.

    by            : plugins that rejected nodes; none = an error, which time may mend
    retry_seconds : time after which another try may succeed without an event; 0 = unknown
    is_passed_on  : another replica tries them next, or lends nodes for them: they do not fail yet, and nothing is
                    reported
    """

    pods: Sequence[QueuedPodInfo]
    by: frozenset[str]
    message: str
    retry_seconds: float = 0.0
    is_passed_on: bool = False


@dataclass(slots=True)
class Decisions:
    """
    placed     : pods and the names of their nodes, assumed and reserved
    unfinished : pods that were not looked at: the cycle has taken long enough
    gone       : UIDs of pods that need no node any more
    looked_for_victims : for how many pods PostFilter plugins were asked
    """

    placed: list[tuple[QueuedPodInfo, str]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[QueuedPodInfo] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    looked_for_victims: int = 0

    def add(self, further: Decisions) -> None:
        """Those about the same or other pods of the unit."""
        self.placed += further.placed
        self.rejected += further.rejected
        self.unfinished += further.unfinished
        self.gone += further.gone
        self.looked_for_victims += further.looked_for_victims


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """
    n_nodes   : between how many the scores decided
    total     : sum of scores of the node; None = it needed none: it was the only one, room had been made there, or
                the pod came there by an exchange
    runner_up : row of the next best node and its sum, after an exchange of the node before; None = there was no other
    """

    policy: Policy
    row: int
    n_nodes: int
    total: float | None = None
    runner_up: tuple[int, float] | None = None


def highest(policy: Policy, rows: Ints, totals: Floats) -> NodeChoice:
    """Choose the row with the highest total of two or more; of equal ones the first, for the runner-up as well."""
    best = int(totals.argmax())
    others = totals.copy()
    others[best] = -np.inf
    second = int(others.argmax())
    runner_up = int(rows[second]), float(others[second])
    return NodeChoice(policy, int(rows[best]), len(rows), float(totals[best]), runner_up)
