"""Dominant resource fairness (Ghodsi et al., NSDI 2011): shares of several resources in one number, and how many pods
bring an owner level with another one.

    dominant share(owner) = max_r used_r / total_r          level(owner) = dominant share / weight

The owner of the lowest level goes next. Amounts are tuples, (n_resources,), in cores, bytes and counts; what is missing
at the end of a shorter one is 0. Resources that no node offers do not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

Amounts = tuple[float, ...]

_A_BIT: Final = 1e-9
"""Of a share: sums of floats that should be equal differ by less."""


def dominant(used: Sequence[float], total: Sequence[float]) -> tuple[float, int]:
    """The largest share, and of which resource; (0, 0) of nothing."""
    share, resource = 0.0, 0
    for at, (one, of_all) in enumerate(zip(used, total, strict=False)):
        if of_all > 0 and one > share * of_all:
            share, resource = one / of_all, at
    return share, resource


def pods_to_level(used: Sequence[float], demand: Sequence[float], total: Sequence[float], share: float) -> float:
    """Fewest further pods of this demand with which the dominant share is `share` or more; inf = none suffice.

    used may be shorter than demand.
    """
    fewest = math.inf
    for at, (one, of_all) in enumerate(zip(demand, total, strict=False)):
        if one > 0 and of_all > 0:
            lacking = (share - _A_BIT) * of_all - (used[at] if at < len(used) else 0.0)
            fewest = min(fewest, max(0.0, math.ceil(lacking / one)))
    return fewest
