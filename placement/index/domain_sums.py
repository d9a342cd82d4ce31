"""Sums over topology domains: nodes that have the same value of a label. The first of two phases; the second looks up.

    pods by row --domain_sums--> sum per label value --sums[column.values]--> per node

A pod then costs one pass over the pods it meets and one over the nodes, instead of one per node and pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Ints
from placement.index.node_labels import ABSENT, LabelColumn


@dataclass(frozen=True, slots=True)
class PodsByRow:
    """Numbers of pods, or sums of their weights, on nodes. A row may come several times, which adds up.

    rows, amounts : (n,)
    """

    rows: Ints
    amounts: Ints


NO_PODS = PodsByRow(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def pods_by_row(amount_of: Mapping[int, int]) -> PodsByRow:
    """From amount by row."""
    n = len(amount_of)
    return PodsByRow(
        np.fromiter(amount_of.keys(), dtype=np.int64, count=n),
        np.fromiter(amount_of.values(), dtype=np.int64, count=n),
    )


def joined(parts: Sequence[PodsByRow]) -> PodsByRow:
    """All together."""
    if not parts:
        return NO_PODS
    return PodsByRow(np.concatenate([p.rows for p in parts]), np.concatenate([p.amounts for p in parts]))


def domain_sums(column: LabelColumn, pods: PodsByRow) -> Ints:
    """(n_values + 1,) sum by number of the label's value; the last one, at ABSENT, is 0.

    Pods on nodes that lack the label, or on rows without a node, count nowhere.
    """
    sums = np.zeros(len(column.names) + 1, dtype=np.int64)
    np.add.at(sums, column.values[pods.rows], pods.amounts)
    sums[ABSENT] = 0
    return sums
