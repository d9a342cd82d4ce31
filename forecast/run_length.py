"""How long the next pod of a service will run, from the run lengths of the pods before it.

The trainer applies this rule to a history, and a live process to the pods that it sees finish: one rule for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

LONGEST_RUN: Final = 366 * 86_400.0

_MANY: Final = 20
"""Number of runs from which the 95 % quantile is an observed value."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Seconds that a pod runs.

    typical  : half of them take no longer
    long     : 19 of 20 take no longer
    n        : pods, or Jobs, that it is from
    is_bound : it is from whole Jobs, whose pods had to be placed first: none of them took longer
    """

    typical: float
    long: float
    n: int
    is_bound: bool = False


def estimate(seconds: Iterable[float], *, is_bound: bool = False) -> RunEstimate:
    """Run length to expect after these run times (at least one).

        typical = median
        long    = 95 % quantile                 of 20 and more
                  longest x (1 + 1 / n)         of n fewer

    The longest of a few is soon passed.
    """
    runs = sorted(seconds)
    n = len(runs)
    long = _quantile(runs, 0.95) if n >= _MANY else runs[-1] * (1.0 + 1.0 / n)
    return RunEstimate(_quantile(runs, 0.5), min(long, LONGEST_RUN), n, is_bound)


def _quantile(ordered: Sequence[float], q: float) -> float:
    """As numpy.quantile, which takes ten times as long for a few numbers."""
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
