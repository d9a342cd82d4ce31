"""How the node that a pod is given stood among the others, for the decision log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from placement.policies.policy import Policy


@dataclass(frozen=True, slots=True)
class Choice:
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


def highest(policy: Policy, rows: Ints, totals: Floats) -> Choice:
    """Choose the row with the highest total of two or more; of equal ones the first, for the runner-up as well."""
    best = int(totals.argmax())
    others = totals.copy()
    others[best] = -np.inf
    second = int(others.argmax())
    runner_up = int(rows[second]), float(others[second])
    return Choice(policy, int(rows[best]), len(rows), float(totals[best]), runner_up)
