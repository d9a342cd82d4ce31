"""What nominated pods of some priority request of each node, in the whole units that filter NodeResourcesFit counts
in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Ints
from cluster.predicted.array_rows import grown
from cluster.tables.columns import whole_units
from kube.objects.objects import PodInfo
from placement.filters.filter import Filter
from placement.filters.node_resources_fit import NodeResourcesFit

NOMINATED_REASON = "node(s) keep room for nominated pods of equal or higher priority"


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


def fit_filter(filters: Sequence[Filter]) -> NodeResourcesFit | None:
    """NodeResourcesFit among filters, as it is set up there; None = requests are not looked at."""
    return next((one for one in filters if isinstance(one, NodeResourcesFit)), None)


def wanted_units(pod: PodInfo, fit: NodeResourcesFit) -> dict[str, int]:
    """By resource name, what counts; never 0."""
    units = {kind: whole_units(kind, amount) for kind, amount in pod.requests.items() if fit.counts(kind)}
    return {kind: amount for kind, amount in units.items() if amount > 0}
