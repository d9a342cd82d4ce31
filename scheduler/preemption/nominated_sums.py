"""A nominated pod, and what nominated pods of some priority request of each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Ints
from cluster.predicted.growing_arrays import grown
from kube.objects.objects import PodInfo


@dataclass(frozen=True, slots=True)
class Nominated:
    """
    victims  : UIDs of pods that were evicted for it, as far as is known
    together : UIDs of the members of its gang that were nominated with it, itself among them; none = it is alone
    """

    pod: PodInfo
    node: str
    row: int
    units: Mapping[str, int]
    victims: frozenset[str] = frozenset()
    together: frozenset[str] = frozenset()


@dataclass(slots=True)
class NominatedSums:
    """Nominated pods of at least some priority: how many and what they request, (n_rows,) or fewer."""

    pods: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    units: dict[str, Ints] = field(default_factory=dict)

    def count(self, one: Nominated, sign: int) -> None:
        self.pods = grown(self.pods, one.row + 1)
        self.pods[one.row] += sign
        for kind, amount in one.units.items():
            column = grown(self.units.get(kind, np.zeros(0, dtype=np.int64)), one.row + 1)
            column[one.row] += sign * amount
            self.units[kind] = column


def fitted(column: Ints, n_rows: int) -> Ints:
    """A copy of the first `n_rows`, 0 where there are fewer."""
    return grown(column, n_rows)[:n_rows].copy()
