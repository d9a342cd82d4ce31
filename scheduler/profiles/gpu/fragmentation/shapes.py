"""What pods ask for, as far as fragmentation is concerned, and how often each of it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats

WHOLE: Final = 1000
"""Thousandths of a whole card."""


@dataclass(frozen=True, slots=True)
class PodShape:
    """What a pod asks for.

    cpu_milli, memory_mib : thousandths of a core, and MiB
    count                 : cards; 0 = none
    milli                 : thousandths of each card, 1 to 1000; less than 1000 only with one card; 0 = no card
    models                : card models that it takes; empty = any
    """

    cpu_milli: int
    memory_mib: int
    count: int
    milli: int
    models: frozenset[str] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether it asks for a part of a card."""
        return self.count == 1 and self.milli < WHOLE

    @property
    def asked_milli(self) -> int:
        """Thousandths of cards in all."""
        return self.count * self.milli

    def order(self) -> tuple[int, int, int, int, list[str]]:
        """For lists that look the same however they came about."""
        return self.cpu_milli, self.milli, self.count, self.memory_mib, sorted(self.models)


@dataclass(frozen=True, slots=True)
class ShapeMix:
    """shapes; weight: (n_shapes,) how likely the next pod is of that shape, sums to 1."""

    shapes: tuple[PodShape, ...]
    weight: Floats

    def __post_init__(self) -> None:
        if self.weight.shape != (len(self.shapes),):
            raise ValueError(f"{len(self.shapes)} shapes need as many weights; got an array of {self.weight.shape}")


def mix_of(amounts: Mapping[PodShape, float] | Iterable[PodShape], *, coverage: float = 1.0) -> ShapeMix:
    """The commonest shapes that together make up `coverage` (0 to 1) of the amounts, or of the pods.

    The published simulator keeps 0.95 (pkg/utils/frag.go, GetTypicalPods): shapes by falling count, until what they
    sum to is reached, and their weights made to sum to 1 again.
    """
    if not isinstance(amounts, Mapping):
        counts: dict[PodShape, float] = {}
        for shape in amounts:
            counts[shape] = counts.get(shape, 0.0) + 1.0
        amounts = counts
    ordered = sorted(amounts.items(), key=lambda entry: (entry[1], entry[0].order()), reverse=True)
    enough, seen, n_kept = coverage * sum(amounts.values()), 0.0, 0
    while n_kept < len(ordered) and seen < enough:
        seen += ordered[n_kept][1]
        n_kept += 1
    kept = ordered[:n_kept]
    weight = np.array([amount for _, amount in kept], dtype=np.float64)
    return ShapeMix(tuple(shape for shape, _ in kept), weight / seen if seen > 0 else weight)
